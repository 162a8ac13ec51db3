/**
 * The images that deploy/Containerfile starts from, as far as a machine with Debian 12 can make them: its own system in
 * place of node:26-bookworm-slim, with the Node of the tests, and the packages of Debian in distroless.
 */
import { spawnSync } from "node:child_process"
import { chmodSync, copyFileSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { isInstalled, output } from "./Tools.ts"

export interface FileSystem {
  /** Folder of the root, after the commands of `mount` have run in the same mount namespace. */
  readonly root: string
  readonly mount: string
}

/**
 * Packages of cc-debian12, whose control files are in /var/lib/dpkg/status.d there. Without ca-certificates: its bundle
 * comes from a script, and Node has certificates.
 */
export const distroless = "base-files gcc-12-base libc6 libgcc-s1 libgomp1 libssl3 libstdc++6 netbase tzdata".split(" ")

const release = () => {
  try {
    return readFileSync("/etc/os-release", "utf8")
  } catch {
    return ""
  }
}

/** Runs commands in a mount namespace, so that nothing stays mounted. */
export const inNamespace = (commands: string, minutes = 1, env: NodeJS.ProcessEnv = process.env) => {
  const options = { encoding: "utf8", env, timeout: minutes * 60_000, killSignal: "SIGKILL" } as const
  const { status, stdout, stderr, error } = spawnSync("unshare", ["--mount", "sh", "-euc", commands], options)
  if (status !== 0) throw new Error(`${error?.message ?? `exited with ${status}`}:\n${commands}\n${stdout}${stderr}`)
  return stdout
}

/** Changes of the folder `name` go to the folder, and none to the system. */
const overlay = (folder: string): FileSystem => {
  for (const name of ["upper", "work", "merged"]) mkdirSync(join(folder, name), { recursive: true })
  const options = `lowerdir=/,upperdir=${folder}/upper,workdir=${folder}/work`
  return { root: join(folder, "merged"), mount: `mount -t overlay overlay -o ${options} ${folder}/merged` }
}

/** Why the images cannot be made here; undefined if they can. `folder`: a new folder. */
export const missing = (folder: string): string | undefined => {
  if (process.getuid?.() !== 0) return "the tests do not run as root"
  if (!/^VERSION_CODENAME=bookworm$/m.test(release())) return "the system is not Debian 12"
  const programs = ["unshare", "nsenter", "setpriv", "chroot", "ip", "apt-get", "dpkg-deb", "npm"]
  const program = programs.find((name) => !isInstalled(name, name === "ip" ? "-V" : "--version"))
  if (program !== undefined) return `there is no ${program}`
  try {
    const { mount } = overlay(folder)
    inNamespace(mount)
  } catch {
    return "this kernel mounts no overlay over its root"
  }
  const probe = ["--print-uris", "download", ...distroless]
  if (!isInstalled("apt-get", ...probe)) return "apt-get knows no packages; apt-get update helps"
  return undefined
}

const images: { readonly [name: string]: (folder: string) => FileSystem } = {
  "docker.io/library/node:26-bookworm-slim": (folder) => {
    if (!process.version.startsWith("v26.")) throw new Error(`The tests run on Node ${process.version}`)
    const { root, mount } = overlay(folder)
    const bin = join(folder, "upper/usr/local/bin")
    mkdirSync(bin, { recursive: true })
    copyFileSync(process.execPath, join(bin, "node"))
    chmodSync(join(bin, "node"), 0o755)
    const devices = `mount -t proc proc ${root}/proc; mount --rbind /dev ${root}/dev`
    return { root, mount: `${mount}; ${devices}` }
  },
  "gcr.io/distroless/cc-debian12:nonroot": (folder) => {
    const root = join(folder, "root")
    mkdirSync(root, { recursive: true })
    const download = `cd ${folder}; apt-get -q -o APT::Sandbox::User=root download ${distroless.join(" ")} >&2`
    const status = "root/var/lib/dpkg/status.d"
    const one = `dpkg-deb -x $file root; dpkg-deb -f $file > ${status}/\${file%%_*}`
    output("sh", ["-euc", `${download}; mkdir -p ${status}; for file in *.deb; do ${one}; done`])
    return { root, mount: ":" }
  },
}

export const make = (name: string, folder: string): FileSystem => {
  const image = images[name]
  if (image === undefined) throw new Error(`No way to make the image ${name} here`)
  mkdirSync(folder, { recursive: true })
  return image(folder)
}
