/**
 * Decodes the binary requests of calls that Connect handles as GeneralMessage.ts does. Connect decodes them with
 * protobuf-es alone, which reads fields of wrong wire types as other values, and has no option for another decoder.
 *
 * So Connect knows each field by a number that no binary message contains. All fields of such a message remain unknown
 * fields, and an interceptor decodes them. Messages in JSON are not affected, because JSON has the names of fields.
 */
import type { DescMessage, DescService, Message } from "@bufbuild/protobuf"
import { BinaryWriter } from "@bufbuild/protobuf/wire"
import type { Interceptor, StreamRequest } from "@connectrpc/connect"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import * as GeneralMessage from "@nereid/core/internal/codec/protobuf/GeneralMessage"
import { MalformedRequest } from "@nereid/core/Errors"
import { fromError } from "./CallStatus.ts"
import { connectError } from "./connectError.ts"

/** The first number beyond those that a tag can have. */
const impossible = 2 ** 29

/** The descriptors of messages, by those that Connect has. */
const descriptors = new WeakMap<DescMessage, DescMessage>()

/** The service for Connect, which then needs `decoded`. */
export const undecoded = <Service extends DescService>(service: Service): Service => ({
  ...service,
  methods: service.methods.map((method) => ({ ...method, input: unknown(method.input) })),
})

const unknown = (schema: DescMessage): DescMessage => {
  const fields = schema.fields.map((field) => ({ ...field, number: impossible + field.number }))
  const copy = { ...schema, fields }
  descriptors.set(copy, schema)
  return copy
}

/** Decodes the messages of services from `undecoded`. */
export const decoded: Interceptor = (next) => (request) => {
  const { input } = request.method
  if (request.stream) return next({ ...request, message: streamed(input, request.message) })
  return next({ ...request, message: decode(input, request.message) })
}

async function* streamed(input: DescMessage, messages: StreamRequest["message"]): StreamRequest["message"] {
  for await (const message of messages) yield decode(input, message)
}

const decode = (input: DescMessage, message: Message): Message => {
  const schema = descriptors.get(input)
  const { $unknown: fields } = message
  if (schema === undefined || fields === undefined) return message
  const writer = new BinaryWriter()
  for (const { no, wireType, data } of fields) writer.tag(no, wireType).raw(data)
  try {
    return GeneralMessage.read(schema, writer.finish())
  } catch (cause) {
    const failure = `failed to parse ${schema.name}: ${errorMessage(cause)}`
    throw connectError(fromError(new MalformedRequest({ message: failure })))
  }
}
