/**
 * Settings of the tests. `npm test` runs the projects "shared-process" and "own-process"; `npm run test:programs`,
 * `test:conformance`, `test:page`, `test:slow`, `test:python` and `test:deploy` run those of their names. Given a file,
 * vitest finds it in any of them.
 */
import { join } from "node:path"
import { defineConfig } from "vitest/config"

const root = join(import.meta.dirname, "..")

// Halves the time in which programs and worker threads of the tests start: they load code that is compiled already.
process.env["NODE_COMPILE_CACHE"] ??= join(root, "node_modules/.cache/compile")

/** The dashboard in a browser. */
const page = ["test/dashboard/*.test.ts"]

/** Start `nereid` and other programs, as users do. */
const programs = ["test/programs/*.test.ts"]

/** The behaviour of Triton over each transport. */
const conformance = ["test/conformance/**/*.test.ts", "test/sequences/*.test.ts"]

/** Each takes longer than half a minute by nature: load for some time, or many restarts. */
const slow = [
  "test/bench/bench.test.ts",
  "test/hard/hard.test.ts",
  "test/programs/model-repository-soak.test.ts",
  "test/replicas/load.test.ts",
  "test/programs/watch.test.ts",
]

/** Start model processes; skipped without Python and numpy. */
const python = ["packages/python/src/*.test.ts", "test/python/*.test.ts"]

/** With tools that test/deploy/main.ts prepares. */
const deploy = ["test/deploy/*.test.ts"]

/** Tests of packages that count what their whole process has: metrics, threads. */
const counting = ["packages/server/src/metrics/*.test.ts", "packages/repository/src/Repository.test.ts"]

const installed = "**/node_modules/**"

export default defineConfig({
  test: {
    root,
    // Tests start servers with dozens of models, and the machine may be busy with other work. They wait for events, so
    // these times pass only if one does not happen.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: "shared-process",
          include: ["packages/*/src/**/*.test.ts", "packages/dashboard/page/**/*.test.ts"],
          exclude: [installed, ...counting, ...python],
          // Most files take longer to load Effect than to run.
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: "own-process",
          include: ["examples/**/*.test.ts", "test/**/*.test.ts", "docs/site/*.test.ts", ...counting],
          exclude: [installed, ...programs, ...conformance, ...page, ...slow, ...python, ...deploy],
        },
      },
      { extends: true, test: { name: "programs", include: programs, exclude: [installed, ...slow] } },
      { extends: true, test: { name: "conformance", include: conformance } },
      { extends: true, test: { name: "page", include: page } },
      { extends: true, test: { name: "slow", include: slow } },
      { extends: true, test: { name: "python", include: python } },
      { extends: true, test: { name: "deploy", include: deploy } },
    ],
  },
})
