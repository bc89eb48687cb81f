# cmake -DDIR=… -DOUT=… -P embed.cmake: the page, its scripts put in, as a C++ string. One file goes over the wire.
file(READ ${DIR}/page.html page)
set(script "")
foreach(part words charts page)
  file(READ ${DIR}/${part}.js text)
  string(APPEND script "${text}")
endforeach()
string(REPLACE "@SCRIPT@\n" "${script}" page "${page}")
# Compilers need not take literals of over 64 kB.
string(LENGTH "${page}" length)
if(length GREATER 65000)
  message(FATAL_ERROR "the page has ${length} bytes, at most 65000")
endif()
file(WRITE ${OUT} "#include \"metrics/export/page.h\"

namespace rooflined::metrics_export {

std::string_view page_html() {
  return R\"~page~(${page})~page~\";
}

}  // namespace rooflined::metrics_export
")
