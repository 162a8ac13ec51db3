/** Configurations of ensembles that are refused without a look at their models, with their messages. */
import { Result } from "effect"
import { expect, it } from "vitest"
import * as ConfigCheck from "./ConfigCheck.ts"
import * as ConfigDefaults from "./ConfigDefaults.ts"
import * as ConfigText from "./ConfigText.ts"

const problem = (text: string) => {
  const config = { ...Result.getOrThrow(ConfigText.parse(text)), name: "e" }
  return ConfigCheck.problem(ConfigDefaults.filled(config, []))
}

const tensor = (kind: "input" | "output", name: string) => `${kind} { name: "${name}" data_type: TYPE_FP32 dims: 1 }`

/**
 * `a:X b:Y > m > Z:c`: inputs of the model and the tensors that they are, its name, its outputs and what they become.
 */
const step = (text: string) => {
  const [inputs = "", model = "", outputs = ""] = text.split(" > ")
  const map = (name: string, pairs: string) =>
    pairs
      .split(" ")
      .filter((pair) => pair !== "")
      .map((pair) => {
        const [key, value] = pair.split(":")
        return `${name} { key: "${key}" value: "${value}" }`
      })
      .join(" ")
  return `step { model_name: "${model}" model_version: -1 ${map("input_map", inputs)} ${map("output_map", outputs)} }`
}

const ensemble = (steps: ReadonlyArray<string>, more = "", inputs = ["X"], outputs = ["Y"]) => `
  platform: "ensemble" ${more}
  ${inputs.map((name) => tensor("input", name)).join(" ")} ${outputs.map((name) => tensor("output", name)).join(" ")}
  ensemble_scheduling { ${steps.map(step).join(" ")} }`

const one = "x:X > m > y:Y"

it.each([
  [ensemble([one]), undefined],
  [ensemble(["x:t > n > y:Y", "x:X > m > y:t"]), undefined],
  [
    ensemble([one]).replace('platform: "ensemble"', 'backend: "x"'),
    "ensemble scheduling cannot be set for model 'e' whose platform is not ensemble",
  ],
  [ensemble([one], "instance_group { count: 1 }"), "instance group should not be specified for ensemble 'e'"],
  [ensemble([one], "optimization {}"), "optimization should not be specified for ensemble 'e'"],
  [ensemble([one], 'model_warmup { name: "w" }'), "model_warmup can not be specified for ensemble 'e'"],
  [ensemble([]), "must specify 'step' for ensemble 'e'"],
  [ensemble(["x:X >  > y:Y"]), "must specify 'model_name' in step 0 of ensemble 'e'"],
  [ensemble([one, " > m > y:Z"]), "must specify 'input_map' in step 1 of ensemble 'e'"],
  [ensemble(["x:X > m > "]), "must specify 'output_map' in step 0 of ensemble 'e'"],
  [
    ensemble(["x:X > m > y:Y", "x:X > n > y:Y"]),
    "ensemble tensor 'Y' can appear in an output map only once for ensemble 'e' step 1",
  ],
  [
    ensemble(["x:X > m > y:Y z:Y"]),
    "ensemble tensor 'Y' can appear in an output map only once for ensemble 'e' step 0",
  ],
  [ensemble([one], "", ["X", "Z"]), "ensemble input 'Z' for ensemble e' is not used"],
  [ensemble([one], "", ["X"], ["Y", "Z"]), "ensemble output 'Z' for ensemble e' is not used"],
  [
    ensemble(["x:X a:u > m > y:Y z:t", "x:t > n > y:u"]),
    "output 'Y' for ensemble 'e' is not written: at least one of its depending tensors, 't', is not connected",
  ],
  [
    ensemble(["x:nowhere > m > y:Y"], "", []),
    "output 'Y' for ensemble 'e' is not written: at least one of its depending tensors, 'nowhere', is not connected",
  ],
  [ensemble(["x:X > m > y:Y z:t"]), "ensemble tensor 't' is unused in ensemble 'e'"],
  [ensemble([one, "x:s > n > y:t", "x:t > n > y:s"]), "ensemble tensor 't' is unused in ensemble 'e'"],
  [ensemble(["x:X > m > y:Y z:X"]), "input 'X' of ensemble 'e' is also an output of one of its steps"],
])("%s: %s", (text, expected) => {
  expect(problem(text)).toBe(expected)
})
