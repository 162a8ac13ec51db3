/** Models in Python of a repository whose instances are threads of one process. */
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { python } from "../fixtures/python.ts"
import { threadedPythons } from "../fixtures/threadedPythons.ts"
import { nereidWith } from "../Program.ts"
import { add, numbers, serve, text, write } from "./PythonRepository.ts"

const threads = 'parameters { key: "instances_in_threads" value { string_value: "yes" } }'

const said = `input { name: "TEXT" data_type: TYPE_STRING dims: 1 } output { name: "ANSWER" data_type: TYPE_STRING dims: 1 } ${threads}`

const groups = 'instance_group [{ kind: KIND_CPU count: 2 }, { kind: KIND_MODEL name: "other" }]'

const check = (executable: string, repository: string) =>
  nereidWith({ NEREID_PYTHON: executable }, "check", `--model-repository=${repository}`).ended

const echo = `input { name: "INPUT0" data_type: TYPE_STRING dims: 1 } output { name: "OUTPUT0" data_type: TYPE_STRING dims: 1 }`

describe.each(threadedPythons)("instances in threads, %s,", (_, executable) => {
  const started = async (...given: Parameters<typeof serve>) => {
    vi.stubEnv("NEREID_PYTHON", executable)
    onTestFinished(() => void vi.unstubAllEnvs())
    const server = await serve(...given)
    /** Answers of three requests at the same time, word by word. */
    const threeTimes = async (word: string): Promise<ReadonlyArray<ReadonlyArray<string>>> => {
      const answers = await Promise.all([0, 1, 2].map(() => server.infer("said", [text("TEXT", word)])))
      return answers.map(({ outputs, error }) => (error ?? String(outputs?.[0]?.data[0])).split(" ")).toSorted()
    }
    return { ...server, threeTimes }
  }

  it("of several groups share a process, their metrics, and calls of other models", async () => {
    const fixture = await write({
      said: { file: "threads", config: `${said} ${groups}` },
      echo: { file: "triton_identity", config: `${echo} instance_group [{ count: 1 }]` },
    })
    const { threeTimes, metrics, log, stop } = await started(fixture)
    const met = await threeTimes("meet")
    expect(met.map(([name]) => name)).toEqual(["other_0", "said_0_0", "said_0_1"])
    expect(new Set(met.map(([, pid]) => pid)).size).toBe(1)
    expect(await threeTimes("meet_then_ask")).toEqual(met.map(([name]) => [name, name]))
    expect(await threeTimes("count")).toEqual([[""], [""], [""]])
    expect(await metrics()).toContain('test_threads{model="said"} 3')
    await stop()
    for (const name of ["other_0", "said_0_0", "said_0_1"]) expect(log()).toContain(`${name} ends in its thread`)
  })

  it("share the resources of the rate limiter", async () => {
    const limit = 'rate_limiter { resources { name: "R" count: 1 } }'
    const limited = `${said} instance_group [{ kind: KIND_CPU count: 3 ${limit} }]`
    const fixture = await write({ said: { file: "threads", config: limited } })
    const { infer } = await started(fixture, { resources: { R: 2 } })
    const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => infer("said", [text("TEXT", "pair")])))
    // Each execution waits for a second one, and never is there a third.
    expect(answers.map(({ outputs, error }) => error ?? outputs?.[0]?.data[0])).toEqual(Array(6).fill("2"))
  })

  it("change their number together, by another process", async () => {
    const fixture = await write({ said: { file: "threads", config: `${said} ${groups}` } })
    const { threeTimes, load, config } = await started(fixture, { control: "explicit", load: ["said"] })
    const [[, before] = []] = await threeTimes("meet")
    add(fixture, "said", { file: "threads", config: `${said} instance_group [{ count: 3 }]` })
    expect((await load("said")).status).toBe(200)
    expect((await config("said")).instance_group).toMatchObject([{ count: 3 }])
    const met = await threeTimes("meet")
    expect(met.map(([name]) => name)).toEqual(["said_0_0", "said_0_1", "said_0_2"])
    expect(met[0]?.[1]).not.toBe(before)
  })

  it("keep each sequence in one of them", async () => {
    const control = (name: string, kind: string, value: string) =>
      `{ name: "${name}" control { kind: ${kind} ${value} } }`
    const flag = "int32_false_true: [0, 1]"
    const controls = [
      control("START", "CONTROL_SEQUENCE_START", flag),
      control("END", "CONTROL_SEQUENCE_END", flag),
      control("READY", "CONTROL_SEQUENCE_READY", "bool_false_true: [false, true]"),
      control("CORRID", "CONTROL_SEQUENCE_CORRID", "data_type: TYPE_UINT64"),
    ].join(", ")
    const config = `max_batch_size: 1 input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 3 }
      instance_group [{ count: 3 }] sequence_batching { control_input [ ${controls} ] } ${threads}`
    const { infer } = await started(await write({ sums: { file: "triton_sequence", config } }))
    const ids = [5, 6, 7]
    const step = (value: number, parameters: object = {}) =>
      Promise.all(
        ids.map(async (id) => {
          const input = [numbers("IN", "INT32", [1, 1], [value * id])]
          const { outputs, error } = await infer("sums", input, { parameters: { sequence_id: id, ...parameters } })
          return error ?? outputs?.[0]?.data[0]
        }),
      )
    expect(await step(1, { sequence_start: true })).toEqual([5, 6, 7])
    for (let turn = 2; turn < 10; turn++) expect(await step(1)).toEqual(ids.map((id) => id * turn))
    expect(await step(1, { sequence_end: true })).toEqual([50, 60, 70])
  })

  it("are accepted by nereid check, which says that the Python is free-threaded", async () => {
    const fixture = await write({ said: { file: "threads", config: said } })
    const { output } = await check(executable, fixture.path)
    expect(output).toMatch(/3\.1\d\.\d+, free-threaded, with numpy .*for said/)
  })
})

describe.skipIf(python === undefined)("instances in threads", () => {
  it("are refused on a Python with a global lock, at the load and by nereid check", async () => {
    const refusal =
      /instances in threads need a free-threaded Python, but \S+ \(NEREID_PYTHON\) is Python 3\.\S+ with a global/
    const fixture = await write({ said: { file: "threads", config: said } })
    const { index } = await serve(fixture)
    expect((await index())[0]?.reason).toMatch(refusal)
    const { output } = await check(String(python), fixture.path)
    expect(output).toMatch(refusal)
    expect(output).toContain("for said")
  })

  it("have a parameter that is yes or no", async () => {
    const config = `${said.replace("yes", "true")}`
    const { index } = await serve(await write({ said: { file: "threads", config } }))
    expect((await index())[0]?.reason).toContain(
      "parameter 'instances_in_threads' must be 'yes' or 'no', but 'true' was given",
    )
  })
})
