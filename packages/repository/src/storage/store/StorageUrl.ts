/**
 * URLs of repositories in object storage, in Triton's forms, and those of models on Hugging Face:
 *
 *   s3://bucket/path   s3://host:port/bucket/path   s3://https://host:port/bucket/path
 *   gs://bucket/path   as://account/container/path[?signature]   hf://organization/model[@revision][/path]
 */
import { Result } from "effect"

interface Location {
  /** Path of the repository, without slashes at its ends; empty for the root. */
  readonly path: string
  /** For messages: without a signature. */
  readonly shown: string
}

export type StorageUrl =
  | (Location & { readonly kind: "s3"; readonly endpoint: string | undefined; readonly bucket: string })
  | (Location & { readonly kind: "gs"; readonly bucket: string })
  | (Location & {
      readonly kind: "as"
      readonly account: string
      readonly host: string
      readonly container: string
      /** A shared access signature, without the question mark; empty without one. */
      readonly signature: string
    })
  | (Location & { readonly kind: "hf"; readonly model: string; readonly revision: string })

/** Whether the text is a URL, and not a path. */
export const isUrl = (text: string): boolean => /^[a-z][a-z0-9+.-]+:\/\//i.test(text)

/** Fails with the reason. */
export const parse = (text: string): Result.Result<StorageUrl, string> => {
  const [, scheme = "", rest = ""] = /^([a-z][a-z0-9+.-]+):\/\/(.*)$/is.exec(text) ?? []
  const [plain = "", query = ""] = splitOnce(rest, "?")
  const segments = plain.split("/").filter((segment) => segment !== "")
  const shown = `${scheme.toLowerCase()}://${plain}`
  if (segments.some((segment) => segment === "." || segment === ".." || /[\p{Cc}\\]/u.test(segment))) {
    return Result.fail(`Invalid path in URL: '${shown}'`)
  }
  switch (scheme.toLowerCase()) {
    case "s3":
      return s3(plain, shown)
    case "gs":
      return Result.map(bucketAndPath(segments, shown), (found) => ({ kind: "gs", ...found }))
    case "as":
      return azure(segments, query, shown)
    case "hf":
      return hub(segments, shown)
    default:
      return Result.fail(`'${scheme}://' is not supported, expected a directory, or s3://, gs://, as:// or hf://`)
  }
}

const splitOnce = (text: string, separator: string): readonly [string, string?] => {
  const index = text.indexOf(separator)
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + separator.length)]
}

const s3 = (plain: string, shown: string): Result.Result<StorageUrl, string> => {
  const [, scheme = "http", host, rest = plain] =
    /^(?:(https?):\/\/)?((?:[\w.-]+|\[[0-9a-f:]+\]):[0-9]+)(?:\/(.*))?$/is.exec(plain) ?? []
  if (host === undefined && /^https?:\/\//i.test(plain)) {
    return Result.fail(`Invalid endpoint in URL: '${shown}', expected a host and a port`)
  }
  const endpoint = host === undefined ? undefined : `${scheme.toLowerCase()}://${host}`
  const segments = (host === undefined ? plain : rest === plain ? "" : rest).split("/").filter((one) => one !== "")
  const full = `s3://${[...(endpoint === undefined ? [] : [endpoint]), ...segments].join("/")}`
  return Result.map(bucketAndPath(segments, full), (found) => ({ kind: "s3", endpoint, ...found }))
}

const bucketAndPath = ([bucket, ...path]: ReadonlyArray<string>, shown: string) => {
  if (bucket === undefined) return Result.fail(`No bucket name found in path: ${shown}`)
  if (!/^[a-z0-9][a-z0-9._-]{1,221}[a-z0-9]$/.test(bucket)) return Result.fail(`Invalid bucket name: '${bucket}'`)
  return Result.succeed({ bucket, path: path.join("/"), shown: shown.replace(/\/+$/, "") })
}

const azure = (
  [host, container, ...path]: ReadonlyArray<string>,
  signature: string,
  shown: string,
): Result.Result<StorageUrl, string> => {
  const [account = ""] = (host ?? "").split(".")
  if (!/^[a-z0-9]{3,24}$/.test(account) || container === undefined || !/^[a-z0-9$][a-z0-9-]{0,62}$/.test(container)) {
    return Result.fail(`Invalid azure storage path: ${shown}`)
  }
  if (host?.includes(".") === true && !/^[a-z0-9]+\.blob\.[a-z0-9.-]+$/.test(host)) {
    return Result.fail(`Invalid azure storage path: ${shown}`)
  }
  const url = `as://${[account, container, ...path].join("/")}`
  const full = host?.includes(".") === true ? host : `${account}.blob.core.windows.net`
  return Result.succeed({ kind: "as", account, host: full, container, path: path.join("/"), signature, shown: url })
}

const hub = (segments: ReadonlyArray<string>, shown: string): Result.Result<StorageUrl, string> => {
  const [organization, name = "", ...path] = segments
  const [model = "", revision = "main"] = splitOnce(name, "@")
  const isName = (text: string | undefined) => text !== undefined && /^[A-Za-z0-9][\w.-]{0,95}$/.test(text)
  if (!isName(organization) || !isName(model) || revision === "") {
    return Result.fail(`Invalid Hugging Face path: ${shown}, expected hf://organization/model[@revision][/path]`)
  }
  const decoded = Result.getOrElse(
    Result.try({ try: () => decodeURIComponent(revision), catch: () => revision }),
    () => revision,
  )
  return Result.succeed({
    kind: "hf",
    model: `${organization}/${model}`,
    revision: decoded,
    path: path.join("/"),
    shown: shown.replace(/\/+$/, ""),
  })
}
