/** Refused configurations and files in the repository of the cases: each model is unavailable, with a reason. */
import type { BrokenModel } from "./BrokenModel.ts"
import type { RepositoryLineName } from "./RepositoryLines.ts"
import { misscheduled } from "./StoredScheduling.ts"
import { wrongConfigurations } from "./WrongConfigurations.ts"
import { wrongEnsembles } from "./WrongEnsembles.ts"
import { wrongModels } from "./WrongModels.ts"

/** With the place in the configuration where its text is illegal: line and column, from 1. */
const illegal: Readonly<Record<string, readonly [config: string, place: string, proves: RepositoryLineName]>> = {
  unknown_field: [
    'max_batch_size: 4\n  nam: "x"\n',
    '2:3: unknown field "nam" for message inference.ModelConfig',
    "A11.parser.unknown-field",
  ],
  unknown_field_within: [
    "input [\n  { name: 'X' },\n  { nam: 'Y' }\n]",
    '3:5: unknown field "nam" for message inference.ModelInput',
    "A11.parser.unknown-field-within",
  ],
  unknown_datatype: ["input {\n  data_type: TYPE_X\n}", '2:14: unknown enum value "TYPE_X"', "A11.parser.unknown-enum"],
  fraction: ["max_batch_size: 1.5", '1:17: expected an integer, got "1.5"', "A11.parser.number"],
  text_for_number: ["\nmax_batch_size: 'four'", "2:17: expected an integer", "A11.parser.number"],
  out_of_range: ["max_batch_size:\n 99999999999", "2:2: ", "A11.parser.range"],
  twice: [
    "max_batch_size: 1\r\nmax_batch_size: 2\r\n",
    '2:1: non-repeated field "max_batch_size" is repeated',
    "A11.parser.twice",
  ],
  two_schedulers: [
    "dynamic_batching {}\n\tsequence_batching {}",
    '2:2: oneof "scheduling_choice" is already set',
    "A11.parser.oneof",
  ],
  open_string: ["platform: 'p\n", "1:11: invalid U+000A in string", "A11.parser.open"],
  open_message: ["input {\n  name: 'X'\n", "3:1: unexpected end of input", "A11.parser.open"],
  no_comma: ["input [\n  { name: 'X' }\n  { name: 'Y' }\n]", '3:3: expected "," or "]"', "A11.parser.comma"],
  stray: ['platform: "onnxruntime_onnx"\n  @', '2:3: unexpected "@"', "A11.parser.stray"],
  extension: ["max_batch_size: 1\n[foo.bar]: 1", '2:9: unknown extension "[foo.bar]"', "A11.parser.extension"],
  any: [
    "[type.googleapis.com/inference.ModelInput] { name: 'X' }",
    'unknown extension "[type.googleapis.com/inference.ModelInput]"',
    "A11.parser.extension",
  ],
  field_number: ["max_batch_size: 1\n5: 1", "2:1: cannot specify field by number: 5", "A11.parser.field-number"],
  two_separators: ["max_batch_size: 1;;", '1:19: expected a field name, got ";"', "A11.parser.separators-twice"],
}

/** Models that fail to load, with the reason. */
export const broken: Readonly<Record<string, BrokenModel>> = {
  ...wrongModels,
  ...wrongConfigurations,
  ...wrongEnsembles,
  ...misscheduled,
  ...Object.fromEntries(
    Object.entries(illegal).map(([name, [config, place, proves]]): [string, BrokenModel] => [
      name,
      {
        config,
        reason: place.startsWith("unknown") ? place : `/${name}/config.pbtxt:${place}`,
        isUnreadable: true,
        proves: [proves],
      },
    ]),
  ),
}
