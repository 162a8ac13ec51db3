import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    include: [
      "packages/*/src/**/*.test.ts",
      "packages/dashboard/page/**/*.test.ts",
      "examples/**/*.test.ts",
      "test/**/*.test.ts",
      "docs/site/*.test.ts",
    ],
    testTimeout: 30_000,
    // Some suites start several servers with dozens of models, and the machine may be busy with others.
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
})
