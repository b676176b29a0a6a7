import tailwindcss from "@tailwindcss/vite"
import react from "@vitejs/plugin-react"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const hub = process.env.PARSYN_URL ?? "http://127.0.0.1:8000"
const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: { alias: { "~": path("./src") } },
  build: {
    outDir: path("../parsyn/hub/static"),
    emptyOutDir: true,
    target: "es2022",
    chunkSizeWarningLimit: 600,
  },
  server: {
    proxy: {
      "/api": hub,
      "/v1": hub,
      "/health": hub,
      "/ws": { target: hub, ws: true },
    },
  },
  test: { include: ["tests/**/*.test.{ts,tsx}"], environment: "happy-dom" },
})
