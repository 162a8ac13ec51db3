/** Metrics that the code of a model makes. */
import { expect } from "vitest"
import { dataOf, type PythonCase } from "../PythonCase.ts"
import { text } from "../PythonRepository.ts"

export const metricCases: ReadonlyArray<PythonCase> = [
  {
    name: "metrics are checked, shared by name, and shown with the labels of the code",
    proves: [
      "P3.metric.counter",
      "P3.metric.gauge",
      "P3.metric.histogram",
      "P3.metric.buckets",
      "P3.metric.value",
      "P3.metric.family",
      "P3.metric.kind",
      "P3.metric.labels",
      "P3.metric.deleted",
      "P3.metric.prefixes",
      "P3.metric.shown",
      "P3.metric.gone",
    ],
    run: async ({ client, metrics }) => {
      // Each case begins with new families.
      for (const name of ["one", "two"]) {
        expect(await client.unload(name)).toBe(undefined)
        expect(await client.load(name)).toBe(undefined)
      }
      await expect.poll(metrics).toContain('test_kept{model="two",version="1"} 0')
      for (const name of ["one", "two"]) expect(dataOf(await client.infer(name, [text("IN", "")]))).toEqual(["4"])
      const lines = (await metrics()).split("\n")
      expect(lines.filter((line) => line.includes("test_kept")).toSorted()).toEqual([
        expect.stringMatching(/^# HELP test_kept description of .*kept/),
        "# TYPE test_kept counter",
        'test_kept{model="one",version="1"} 2',
        'test_kept{model="two",version="1"} 2',
      ])
      expect(lines.filter((line) => line.startsWith("test_times"))).toEqual([
        'test_times_bucket{kind="x",le="1"} 2',
        'test_times_bucket{kind="x",le="2.5"} 4',
        'test_times_bucket{kind="x",le="+Inf"} 6',
        'test_times_sum{kind="x"} 19',
        'test_times_count{kind="x"} 6',
      ])
      // Released by the code itself.
      await expect.poll(metrics).not.toMatch(/test_(counter|gauge|histogram|empty|deleted)/)
      await client.unload("one")
      await expect.poll(metrics).not.toContain('test_kept{model="one"')
      expect(await metrics()).toContain('test_kept{model="two",version="1"} 2')
      await client.unload("two")
      await expect.poll(metrics).not.toContain("test_kept")
      for (const name of ["one", "two"]) expect(await client.load(name)).toBe(undefined)
    },
  },
]
