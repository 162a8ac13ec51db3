/** Models of the tests of slow readers: `streams` and its ensemble `chain`, and `bls`, whose code calls them. */
import { expect } from "vitest"
import { type Served, write } from "./PythonRepository.ts"

const texts =
  'input { name: "TEXT" data_type: TYPE_STRING dims: 1 } output { name: "ANSWER" data_type: TYPE_STRING dims: 1 }'
const decoupled = "model_transaction_policy { decoupled: true }"
const calling =
  'input { name: "IN" data_type: TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }'

export const models = async () => {
  const fixture = await write({
    streams: { file: "triton_streams", config: `max_batch_size: 4 ${texts} ${decoupled}` },
    bls: { file: "triton_sync", config: calling },
  })
  fixture.write("chain/1/README", "An ensemble has no file.")
  fixture.write(
    "chain/config.pbtxt",
    `platform: "ensemble" max_batch_size: 4 ${texts} ${decoupled} ensemble_scheduling { step [ {
      model_name: "streams" model_version: -1 input_map { key: "TEXT" value: "TEXT" } output_map { key: "ANSWER" value: "ANSWER" }
    } ] }`,
  )
  return fixture
}

/** How many responses the model has sent when it waits first. */
export const sentBeforeWait = async ({ log }: Pick<Served, "log">): Promise<number> => {
  await expect.poll(log).toMatch(/waits after \d+/)
  return Number([...log().matchAll(/waits after (\d+)/g)].at(-1)?.[1])
}
