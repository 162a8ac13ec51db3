/**
 * A digest of what a version of a model computes with: its configuration and the files of its directory, other versions
 * and what Python has compiled excluded. Equal directories on several machines have one revision, whatever the times of
 * their files.
 */
import * as Files from "@nereid/onnx/internal/file/Files"
import { toBinary } from "@bufbuild/protobuf"
import { type ModelConfig, ModelConfigSchema } from "@nereid/protocol/model_config"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { join } from "node:path"

/** Maximum size of a file, in bytes. A model with a larger one has no revision. */
const maxFileBytes = 2 ** 31 - 1

/** Maximum files and directories of a model, and their depth. */
const maxEntries = 10_000
const maxDepth = 32

/** Undefined for a directory that cannot be read, or has more than the limits allow. */
export const make = Effect.fnUntraced(function* (
  path: string,
  version: number,
  config: ModelConfig,
): Effect.fn.Return<string | undefined> {
  const hash = createHash("sha256").update(toBinary(ModelConfigSchema, config, { writeUnknownFields: false }))
  let entries = 0
  const visit = Effect.fnUntraced(function* (
    folder: string,
    depth: number,
  ): Effect.fn.Return<void, Files.FileProblem | TooMany> {
    const listed = yield* Files.list(join(path, folder))
    for (const { name } of [...listed].toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const isOtherVersion = folder === "" && /^[1-9][0-9]*$/.test(name) && Number(name) !== version
      if (isOtherVersion || name.startsWith(".") || name === "__pycache__") continue
      entries += 1
      if (entries > maxEntries || depth === maxDepth) return yield* Effect.fail(tooMany)
      const file = join(folder, name)
      const kind = yield* Files.kind(join(path, file))
      if (kind === "directory") yield* visit(file, depth + 1)
      else {
        const content = yield* Files.read(join(path, file), maxFileBytes)
        hash.update(`${file.length}:${file}${content.length}:`).update(content)
      }
    }
  })
  return yield* visit("", 0).pipe(
    Effect.map(() => hash.digest("base64url")),
    Effect.orElseSucceed(() => undefined),
  )
})

type TooMany = "too many files"

const tooMany: TooMany = "too many files"
