# The Debian package, by CPack: `cmake --preset package && cmake --build --preset package && (cd build/package && cpack)`
# (deploy/package.sh does that; it also makes the tarball and the package for arm64).
set(CPACK_PACKAGE_NAME rooflined)
set(CPACK_PACKAGE_VENDOR "the rooflined authors")
set(CPACK_PACKAGE_CONTACT "the rooflined authors <maintainers@rooflined.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION
"A daemon for a host that serves language models. It watches the streamed
responses of the inference server on the wire, measures the memory bandwidth
of the host in idle moments, and exports to Prometheus how much of that
bandwidth token generation uses (MBU), with tokens per second and inter-token
latency beside it, and what the last deploy did to it. The server needs no
change. A simulator of an inference server with a known MBU comes with it.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)   # the settings lie in /etc, outside the prefix
set(CPACK_STRIP_FILES ON)
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR}/packages)

set(CPACK_GENERATOR DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# systemd-sysusers makes the user; in a container without systemd its stand-alone package does.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "systemd | systemd-standalone-sysusers")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "prometheus")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_CURRENT_LIST_DIR}/debian/conffiles ${CMAKE_CURRENT_LIST_DIR}/debian/postinst
  ${CMAKE_CURRENT_LIST_DIR}/debian/postrm ${CMAKE_CURRENT_LIST_DIR}/debian/prerm)

include(CPack)
