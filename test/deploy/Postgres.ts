/** A PostgreSQL server for one test, where its programs are installed; it does not run as root. */
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { chownSync, globSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import { freePort } from "../Program.ts"

/** The folder of the programs; undefined without them. Debian has them outside of the PATH. */
export const programs = ["", ...globSync("/usr/lib/postgresql/*/bin").toSorted().toReversed()].find(
  (folder) => spawnSync(join(folder, "postgres"), ["--version"]).status === 0,
)

/** Another user for a test that runs as root; undefined if there is none. */
const account = (): { readonly uid: number; readonly gid: number } | undefined => {
  if (userInfo().uid !== 0) return { uid: userInfo().uid, gid: userInfo().gid }
  for (const name of ["postgres", "nobody"]) {
    const ids = ["-u", "-g"].map((flag) => Number(spawnSync("id", [flag, name], { encoding: "utf8" }).stdout.trim()))
    const [uid = 0, gid = 0] = ids
    if (uid > 0) return { uid, gid }
  }
  return undefined
}

export class Postgres implements AsyncDisposable {
  readonly url: string
  readonly #server: ReturnType<typeof spawn>
  readonly #folder: string

  private constructor(url: string, server: ReturnType<typeof spawn>, folder: string) {
    this.url = url
    this.#server = server
    this.#folder = folder
  }

  static async start(): Promise<Postgres> {
    const user = account()
    if (programs === undefined || user === undefined) throw new Error("PostgreSQL is not installed")
    const folder = mkdtempSync(join(tmpdir(), "nereid-postgres-"))
    chownSync(folder, user.uid, user.gid)
    const data = join(folder, "data")
    const options = { ...user, cwd: folder, stdio: "ignore" as const }
    const setup = ["--pgdata", data, "--username", "nereid", "--auth", "trust", "--no-sync", "--encoding", "UTF8"]
    execFileSync(join(programs, "initdb"), setup, options)
    const port = await freePort()
    const settings = ["listen_addresses=127.0.0.1", `unix_socket_directories=${folder}`, "fsync=off"]
    const args = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])]
    const server = spawn(join(programs, "postgres"), args, options)
    const ready = () =>
      spawnSync(join(programs ?? "", "pg_isready"), ["-h", "127.0.0.1", "-p", String(port), "-t", "1"]).status === 0
    for (let attempt = 0; !ready(); attempt++) {
      if (attempt > 200 || server.exitCode !== null) throw new Error("PostgreSQL does not start")
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    return new Postgres(`postgres://nereid@127.0.0.1:${port}/postgres`, server, folder)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#server.on("exit", resolve))
    // Immediate: it does not wait for its clients.
    this.#server.kill("SIGQUIT")
    await ended
    rmSync(this.#folder, { recursive: true })
  }
}
