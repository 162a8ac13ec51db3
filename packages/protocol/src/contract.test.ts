// Holds the generated descriptors to the wire contract in contract/*.fields.txt: every name, number, type, label, oneof
// and method, in the order of declaration. That proto/ and src/gen agree is another check: .ci/generated.
//
// The listings are the contract and no snapshots of it: `vitest -u` must not be able to change them.
import { readFileSync } from "node:fs"
import { type DescEnum, type DescField, type DescFile, type DescMessage, ScalarType } from "@bufbuild/protobuf"
import { FeatureSet_FieldPresence as FieldPresence, Edition } from "@bufbuild/protobuf/wkt"
import { file_grpc_health_v1_health } from "@nereid/protocol/health"
import { file_inference_grpc_service } from "@nereid/protocol/grpc_service"
import { file_inference_model_config } from "@nereid/protocol/model_config"
import { file_onnx_onnx } from "@nereid/protocol/onnx"
import { file_grpc_reflection_v1_reflection } from "@nereid/protocol/reflection"
import { file_grpc_reflection_v1alpha_reflection } from "@nereid/protocol/reflection_v1alpha"
import { describe, expect, test } from "vitest"

describe("the generated descriptors are the contract", () => {
  test.each([
    ["grpc_service", file_inference_grpc_service],
    ["model_config", file_inference_model_config],
    ["health", file_grpc_health_v1_health],
    ["onnx", file_onnx_onnx],
    ["reflection", file_grpc_reflection_v1_reflection],
    ["reflection_v1alpha", file_grpc_reflection_v1alpha_reflection],
  ])("%s", (name, file) => {
    const contract = readFileSync(new URL(`./contract/${name}.fields.txt`, import.meta.url), "utf8")
    expect(listing(file)).toBe(contract)
  })
})

function listing(file: DescFile): string {
  const syntax = file.edition === Edition.EDITION_PROTO2 ? "proto2" : "proto3"
  const services = file.services.flatMap((service) => [
    `service ${relativeName(service)}`,
    ...service.methods.map(({ name, proto, input, output }) => {
      const request = streamLabel(proto.clientStreaming) + relativeName(input, file)
      const response = streamLabel(proto.serverStreaming) + relativeName(output, file)
      return `  rpc ${name}(${request}) returns (${response})`
    }),
  ])
  const lines = [
    `# ${file.name.split("/").at(-1)}.proto  package ${file.proto.package} syntax ${syntax}`,
    ...services,
    ...file.enums.map(enumLine),
    ...file.messages.flatMap(messageLines),
  ]
  return lines.join("\n") + "\n"
}

function streamLabel(streaming: boolean): string {
  return streaming ? "stream " : ""
}

function messageLines(message: DescMessage): string[] {
  return [
    `message ${relativeName(message)}`,
    ...message.fields.map((field) => `  ${field.number} ${field.name}: ${label(field)}${type(field)}${suffix(field)}`),
    ...message.nestedEnums.map(enumLine),
    ...message.nestedMessages.flatMap(messageLines),
  ]
}

function enumLine(descriptor: DescEnum): string {
  const values = descriptor.values.map(({ name, number }) => `${name}=${number}`)
  return `enum ${relativeName(descriptor)}: ${values.join(", ")}`
}

/** Only what the syntax does not imply: a plain field is optional in proto2 and has no presence in proto3. */
function label(field: DescField): string {
  if (field.fieldKind === "list") return "repeated "
  if (field.presence === FieldPresence.LEGACY_REQUIRED) return "required "
  return field.proto.proto3Optional ? "optional " : ""
}

function type(field: DescField): string {
  const element = field.message ?? field.enum
  const name = element ? relativeName(element, field.parent.file) : scalarName(field.scalar!)
  return field.fieldKind === "map" ? `map<${scalarName(field.mapKey)}, ${name}>` : name
}

/** A list of numbers is packed by default in proto3 and expanded by default in proto2; only the other is written. */
function suffix(field: DescField): string {
  if (field.oneof && !field.proto.proto3Optional) return ` oneof ${field.oneof.name}`
  if (field.fieldKind !== "list" || field.listKind === "message") return ""
  const packable = field.listKind === "enum" || ![ScalarType.STRING, ScalarType.BYTES].includes(field.scalar)
  const packedByDefault = packable && field.parent.file.edition !== Edition.EDITION_PROTO2
  return field.packed === packedByDefault ? "" : field.packed ? " packed" : " expanded"
}

/** Without the package, where that is the package of the file it is named in. */
function relativeName(descriptor: { typeName: string; file: DescFile }, from: DescFile = descriptor.file): string {
  const prefix = `${from.proto.package}.`
  return descriptor.typeName.startsWith(prefix) ? descriptor.typeName.slice(prefix.length) : descriptor.typeName
}

function scalarName(scalar: ScalarType): string {
  return ScalarType[scalar].toLowerCase()
}
