/**
 * An image without an engine: a folder that the instructions of a Containerfile have filled, each as it is there. An
 * unknown instruction is an error, so the Containerfile cannot do what the tests leave out.
 */
import { readFileSync } from "node:fs"
import { join, posix } from "node:path"
import { type Ended, Program, root as repository } from "../Program.ts"
import { type FileSystem, inNamespace, make } from "./BaseImages.ts"
import { execForm, type Instruction, parse, type Stage } from "./Containerfile.ts"

export interface Image extends FileSystem {
  readonly variables: { readonly [name: string]: string }
  readonly directory: string
  readonly user: string
  readonly ports: ReadonlyArray<number>
  readonly entrypoint: ReadonlyArray<string>
  readonly command: ReadonlyArray<string>
}

/** Images by name: those of the stages. */
export type Images = ReadonlyMap<string, Image>

const empty: Omit<Image, keyof FileSystem> = {
  variables: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
  directory: "/",
  user: "0:0",
  ports: [],
  entrypoint: [],
  command: [],
}

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Variables that a command of RUN may need to reach the registries. */
const network = Object.entries(process.env).filter(([name]) =>
  /^(https?_proxy|no_proxy|ssl_cert_\w+|node_extra_ca_certs|npm_config_(registry|cafile))$/i.test(name),
)

const copy = (image: Image, { options, text }: Instruction, images: Images, context: string) => {
  const words = text.split(/\s+/)
  const target = words.pop() ?? ""
  const from = options.get("from")
  const source = from === undefined ? { root: context, mount: ":" } : images.get(from)
  if (source === undefined || options.size > (from === undefined ? 0 : 1))
    throw new Error(`COPY from ${from} to ${target}: not known here`)
  const path = `${image.root}${posix.resolve(image.directory, target)}`
  const folder = target.endsWith("/") ? path : posix.dirname(path)
  // A folder is copied by its content. No file is changed in place: other images share it.
  const one = `if [ -d "$from" ]; then mkdir -p ${path}; cp -a --remove-destination "$from"/. ${path}/;
    else mkdir -p ${folder}; cp -a --remove-destination "$from" ${target.endsWith("/") ? folder : path}; fi`
  const sources = words.map((word) => `${source.root}${posix.resolve("/", word)}`)
  const mounts = source.mount === image.mount ? source.mount : `${source.mount}; ${image.mount}`
  inNamespace(`${mounts}; for from in ${sources.join(" ")}; do ${one}; done`)
}

const apply = (image: Image, instruction: Instruction, images: Images, context: string): Image => {
  const { keyword, text } = instruction
  switch (keyword) {
    case "COPY":
      copy(image, instruction, images, context)
      return image
    case "RUN": {
      const command = `cd ${image.directory}; ${text}`
      const shell = `${image.mount}; exec chroot ${image.root} /bin/sh -ec ${quote(command)}`
      inNamespace(shell, 5, { HOME: "/root", ...Object.fromEntries(network), ...image.variables })
      return image
    }
    case "ENV": {
      const pairs = text.split(/\s+/).map((pair) => /^(\w+)=([^"'$\\]+)$/.exec(pair) ?? [])
      if (pairs.some(({ length }) => length !== 3)) throw new Error(`ENV ${text}: not known here`)
      return { ...image, variables: { ...image.variables, ...Object.fromEntries(pairs.map((pair) => pair.slice(1))) } }
    }
    case "WORKDIR": {
      const directory = posix.resolve(image.directory, text)
      inNamespace(`${image.mount}; mkdir -p ${image.root}${directory}`)
      return { ...image, directory }
    }
    case "USER":
      return { ...image, user: text }
    case "EXPOSE":
      return { ...image, ports: text.split(/\s+/).map(Number) }
    case "ENTRYPOINT":
      return { ...image, entrypoint: execForm(instruction), command: [] }
    case "CMD":
      return { ...image, command: execForm(instruction) }
    default:
      throw new Error(`${keyword} ${text}: not known here`)
  }
}

/** A copy of an image, whose files are shared. */
const derive = (image: Image, folder: string): Image => {
  if (image.mount !== ":") throw new Error("Only an image without mounts can be derived from")
  const root = join(folder, "root")
  inNamespace(`mkdir -p ${folder}; cp -al ${image.root} ${root}`)
  return { ...image, root }
}

/** The images of all stages. `others`: images that a FROM may name. */
export const build = (containerfile: string, context: string, folder: string, others?: Images): Images => {
  const images = new Map(others)
  parse(containerfile).forEach(({ name, base, instructions }: Stage) => {
    const from = images.get(base)
    const place = join(folder, name)
    const start = from === undefined ? { ...empty, ...make(base, place) } : derive(from, place)
    images.set(
      name,
      instructions.reduce((image, next) => apply(image, next, images, context), start),
    )
  })
  return images
}

/**
 * Starts an image as an engine does: with a read-only root, as the first process of its own namespace, without a way to
 * more privileges, with a network that has the loopback device only, and with /tmp in memory. `models`: folder at
 * /models. `args` replace the command.
 */
export const start = (
  { root, variables, directory, user, entrypoint, command }: Image,
  { models, args = command }: { readonly models?: string; readonly args?: ReadonlyArray<string> },
): Container => {
  const [uid, gid] = user.split(":")
  const devices = ["null", "urandom"].map(
    (name) => `touch ${root}/dev/${name}; mount --bind /dev/${name} ${root}/dev/${name}`,
  )
  const mounts = [
    `mount --bind ${root} ${root}`,
    `mkdir -p ${root}/tmp ${root}/proc ${root}/dev ${root}/models`,
    `mount -t tmpfs tmpfs ${root}/tmp`,
    `mount -t proc proc ${root}/proc`,
    devices.join("\n"),
    models === undefined ? ":" : `mount --bind -o ro ${models} ${root}/models`,
    `mount -o remount,bind,ro ${root}`,
    "ip link set lo up",
  ]
  const pairs = Object.entries(variables).map(([name, value]) => quote(`${name}=${value}`))
  const options = `--root=${root} --wd=${directory} --setgid=${gid} --setuid=${uid}`
  const words = [...entrypoint, ...args].map(quote)
  const run = `exec env -i ${pairs.join(" ")} setpriv --no-new-privs unshare ${options} ${words.join(" ")}`
  return new Container(`${mounts.join("\n")}\n${run}`)
}

const namespaces = ["--mount", "--net", "--pid", "--ipc", "--uts", "--fork"]

/** A running image. */
export class Container implements AsyncDisposable {
  /** `unshare`, which waits for the first process of the namespace, and ends as that does. */
  readonly #parent: Program

  constructor(script: string) {
    this.#parent = new Program([...namespaces, "sh", "-euc", script], {}, repository, "unshare")
  }

  get ended(): Promise<Ended> {
    return this.#parent.ended
  }

  match(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#parent.match(pattern)
  }

  /** Identifier of the server for the system around the namespace. Fails once it has ended. */
  get pid(): number {
    const { pid } = this.#parent
    const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8"))
    if (child === 0) throw new Error("The container has ended")
    return child
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal)
  }

  /** Ends it with SIGTERM and waits. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.signal("SIGTERM")
    } catch {
      // It has ended.
    }
    await this.ended
  }
}
