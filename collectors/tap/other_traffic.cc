#include "collectors/tap/other_traffic.h"

#include <algorithm>
#include <array>

namespace rooflined::tap {

namespace {

// wire-formats.md, the routes of each server beside those that generate.
constexpr std::array<std::string_view, 43> kEngineRoutes = {
    "/health",         "/healthz",     "/health_generate", "/ping",         "/ready",           "/readyz",
    "/livez",          "/metrics",     "/version",         "/info",         "/models",          "/props",
    "/slots",          "/tokenize",    "/detokenize",      "/embeddings",   "/embedding",       "/embed",
    "/rerank",         "/reranking",   "/score",           "/pooling",      "/classify",        "/load",
    "/is_sleeping",    "/model_info",  "/get_model_info",  "/server_info",  "/get_server_info", "/lora-adapters",
    "/apply-template", "/flush_cache", "/input_tokens",    "/count_tokens", "/api/tags",        "/api/ps",
    "/api/show",       "/api/pull",    "/api/embeddings",  "/api/embed",    "/extra/version",   "/v1/model",
    "/api/version"};

}  // namespace

bool is_engine_route(std::string_view path) {
  return std::any_of(kEngineRoutes.begin(), kEngineRoutes.end(),
                     [path](std::string_view route) { return path.ends_with(route); });
}

bool is_engine_header(std::string_view server) {
  return server == "llama.cpp" || server.starts_with("ConcedoLlama") || server.starts_with("text-generation-inference");
}

}  // namespace rooflined::tap
