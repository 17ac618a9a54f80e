// The console is built into `dist/`, which is committed and compiled into the binary. `npm run dev` serves the sources
// and passes requests on to a server, QUERENT_URL.
import { defineConfig } from "vite";

const server = process.env.QUERENT_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  base: "/console/",
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    target: "es2022",
    assetsDir: ".",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 900,
    rollupOptions: {
      output: {
        hashCharacters: "hex",
        entryFileNames: "[name]-[hash].js",
        chunkFileNames: "[name]-[hash].js",
        assetFileNames: "[name]-[hash][extname]",
      },
    },
  },
  server: {
    // The client package is outside of this folder.
    fs: { allow: [".", "../../clients/typescript"] },
    proxy: Object.fromEntries(
      ["/v1", "/health", "/metrics", "/openapi.json"].map((path) => [
        path,
        // A page of another origin is refused; the proxy is this server's own page.
        { target: server, changeOrigin: true, headers: { origin: server } },
      ]),
    ),
  },
});
