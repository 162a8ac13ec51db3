/** What a repository's models do with several requests, as their configuration says: who shares a batch, and what is counted. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Connections } from "./Connections.ts"
import { metric, until } from "./Counters.ts"
import { hold } from "./HeldQueue.ts"
import { tensor } from "./InferRequest.ts"
import { batches } from "./Statistics.ts"
import { ways } from "./Way.ts"

type Connected = Connections["Service"]

/** Rows of one or more columns. */
const x = (rows: number, columns = 1, name = "X") =>
  tensor(
    name,
    "INT32",
    [rows, columns],
    Array.from({ length: rows * columns }, () => 7),
  )

const difference = (
  one: Awaited<ReturnType<typeof batches>>,
  other: Awaited<ReturnType<typeof batches>>,
): Awaited<ReturnType<typeof batches>> => ({
  rows: one.rows - other.rows,
  executions: one.executions - other.executions,
  sizes: Object.fromEntries(
    Object.entries(one.sizes)
      .map(([size, count]) => [size, count - (other.sizes[size] ?? 0)] as const)
      .filter(([, count]) => count > 0),
  ),
})

layer(Connections.layerWithQueues, { excludeTestServices: true })("queues of a repository", (it) => {
  const live = (name: string, test: (connections: Connected) => Promise<void>) =>
    it.effect(name, () => Effect.flatMap(Connections, (connections) => Effect.promise(() => test(connections))))

  for (const way of ways("queues", "queuesConnect")) {
    /** What the requests of a test have added to the statistics of a model. */
    const counting = async (connections: Connected, model: string, test: () => Promise<void>) => {
      const before = await batches(connections, model, way.server)
      await test()
      return difference(await batches(connections, model, way.server), before)
    }

    live(`${way.name}: a full queue refuses one more (C36)`, async (connections) => {
      const { wait, refuse, end } = await hold(connections, way, "bounded", x(1))
      await wait("waits")
      await refuse("more", {}, { tag: "QueueFull", error: "[request id: more] Exceeds maximum queue size" })
      assert.deepStrictEqual(await end(), { executions: [["waits"]], refused: 1, served: 2 })
    })

    live(`${way.name}: a batch has as many rows as fit, in their order (C36)`, async (connections) => {
      const counted = await counting(connections, "fills", async () => {
        const { wait, end } = await hold(connections, way, "fills", x(1))
        for (const [id, rows] of Object.entries({ a: 1, b: 2, c: 1, d: 3, e: 2, f: 4, g: 1 })) {
          await wait(id, {}, x(rows))
        }
        const { executions } = await end()
        assert.deepStrictEqual(executions, [["a", "b", "c"], ["d"], ["e"], ["f"], ["g"]])
      })
      assert.deepStrictEqual(counted, { rows: 15, executions: 6, sizes: { 1: 2, 2: 1, 3: 1, 4: 2 } })
    })

    live(`${way.name}: a batch is filled from the highest level down (C36)`, async (connections) => {
      const { wait, end } = await hold(connections, way, "fills_by_level", x(1))
      await wait("a")
      await wait("b", { priority: 2n })
      await wait("high", { priority: 1n })
      const { executions } = await end()
      assert.deepStrictEqual(executions, [["high", "a"], ["b"]])
    })

    live(`${way.name}: batches have preferred sizes, and whoever is left waits for more (C36)`, async (connections) => {
      const counted = await counting(connections, "prefers", async () => {
        const { wait, end } = await hold(connections, way, "prefers", x(2))
        for (const id of ["a", "b", "c", "d", "e", "f", "g"]) await wait(id, {}, x(1))
        const answered = end()
        const pending = () => metric(connections, "nv_inference_pending_request_count", "prefers", "", way.server)
        await until(async () => (await pending()) === 1)
        const last = { model: "prefers", id: "last", inputs: [x(1)] }
        assert.deepStrictEqual(await way.ask(connections, last, { outputs: last.inputs }), [])
        const { executions } = await answered
        assert.deepStrictEqual(executions, [
          ["a", "b", "c", "d"],
          ["e", "f"],
          ["g", "last"],
        ])
      })
      assert.deepStrictEqual(counted, { rows: 10, executions: 4, sizes: { 2: 3, 4: 1 } })
    })

    live(`${way.name}: nobody waits for more than the delay (C36)`, async (connections) => {
      const counted = await counting(connections, "hurries", async () => {
        const request = { model: "hurries", inputs: [x(1)] }
        assert.deepStrictEqual(await way.ask(connections, request, { outputs: request.inputs }), [])
      })
      assert.deepStrictEqual(counted, { rows: 1, executions: 1, sizes: { 1: 1 } })
    })

    live(`${way.name}: rows of other shapes have batches of their own (C36)`, async (connections) => {
      const counted = await counting(connections, "shapes", async () => {
        const { wait, end } = await hold(connections, way, "shapes", x(1))
        await wait("one", {}, x(1, 1))
        await wait("two", {}, x(1, 2))
        await wait("one again", {}, x(2, 1))
        await wait("two again", {}, x(2, 2))
        const { executions } = await end()
        assert.deepStrictEqual(executions, [
          ["one", "one again"],
          ["two", "two again"],
        ])
      })
      assert.deepStrictEqual(counted, { rows: 7, executions: 3, sizes: { 1: 1, 3: 2 } })
    })

    live(`${way.name}: rows of any shapes share a batch where they may be ragged (C36)`, async (connections) => {
      const { wait, end } = await hold(connections, way, "shapes_ragged", x(1))
      await wait("one", {}, x(1, 1))
      await wait("three", {}, x(2, 3))
      await wait("none", {}, x(1, 0))
      const { executions } = await end()
      assert.deepStrictEqual(executions, [["one", "three", "none"]])
    })

    live(`${way.name}: rows of other shapes have batches of their own in ONNX Runtime (C36)`, async (connections) => {
      const pending = () => metric(connections, "nv_inference_pending_request_count", "onnx_gathers", "", way.server)
      const counted = await counting(connections, "onnx_gathers", async () => {
        const send = (columns: number) =>
          way.ask(connections, { model: "onnx_gathers", inputs: [x(1, columns)] }, { outputs: [x(1, columns, "Y")] })
        const first = send(1)
        await until(async () => (await pending()) === 1)
        const second = send(3)
        await until(async () => (await pending()) === 2)
        assert.deepStrictEqual((await Promise.all([first, send(1)])).flat(), [])
        assert.deepStrictEqual((await Promise.all([second, send(3)])).flat(), [])
      })
      assert.deepStrictEqual(counted, { rows: 4, executions: 2, sizes: { 2: 2 } })
    })

    live(
      `${way.name}: without dynamic_batching every request is an execution of its own (C36)`,
      async (connections) => {
        const counted = await counting(connections, "alone", async () => {
          const { wait, end } = await hold(connections, way, "alone", x(1))
          await wait("a")
          await wait("b", {}, x(3))
          const { executions } = await end()
          assert.deepStrictEqual(executions, [["a"], ["b"]])
        })
        assert.deepStrictEqual(counted, { rows: 5, executions: 3, sizes: { 1: 2, 3: 1 } })
      },
    )

    live(`${way.name}: so it is in ONNX Runtime (C36)`, async (connections) => {
      const counted = await counting(connections, "onnx_alone", async () => {
        const send = (rows: number) =>
          way.ask(connections, { model: "onnx_alone", inputs: [x(rows)] }, { outputs: [x(rows, 1, "Y")] })
        assert.deepStrictEqual((await Promise.all([1, 2, 1, 2].map(send))).flat(), [])
      })
      assert.deepStrictEqual(counted, { rows: 6, executions: 4, sizes: { 1: 2, 2: 2 } })
    })
  }
})
