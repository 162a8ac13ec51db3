/** A running API server of Kubernetes on loopback, with its etcd, and kubectl for it. */
import { spawnSync } from "node:child_process"
import { generateKeyPairSync } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort, Program } from "../Program.ts"

const token = "admin"

export class ApiServer implements AsyncDisposable {
  readonly #program: Program
  readonly #folder: string
  readonly #flags: ReadonlyArray<string>

  private constructor(program: Program, folder: string, port: number) {
    this.#program = program
    this.#folder = folder
    const certificate = join(folder, "certs/apiserver.crt")
    this.#flags = [`--server=https://127.0.0.1:${port}`, `--token=${token}`, `--certificate-authority=${certificate}`]
  }

  static async start(): Promise<ApiServer> {
    const folder = mkdtempSync(join(tmpdir(), "nereid-kubernetes-"))
    const [port, etcd] = [await freePort(), await freePort()]
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
    const key = join(folder, "service-account.pem")
    writeFileSync(key, privateKey.export({ type: "pkcs1", format: "pem" }))
    const tokens = join(folder, "tokens.csv")
    writeFileSync(tokens, `${token},admin,admin,system:masters\n`)
    const flags = [
      "--bind-address=127.0.0.1",
      `--secure-port=${port}`,
      `--cert-dir=${join(folder, "certs")}`,
      `--token-auth-file=${tokens}`,
      "--authorization-mode=RBAC",
      `--service-account-key-file=${key}`,
      `--service-account-signing-key-file=${key}`,
      "--service-account-issuer=https://localhost",
      "--service-cluster-ip-range=10.0.0.0/24",
      // It refuses to announce an address of loopback.
      "--endpoint-reconciler-type=none",
      // There is no controller that creates the account which pods need.
      "--disable-admission-plugins=ServiceAccount",
    ]
    const program = new Program([join(folder, "etcd"), `http://127.0.0.1:${etcd}`, ...flags], {}, folder, "apiserver")
    const server = new ApiServer(program, folder, port)
    try {
      await server.#ready()
    } catch (error) {
      await server[Symbol.asyncDispose]()
      throw error
    }
    return server
  }

  /** Waits until it answers, at most two minutes. */
  async #ready(): Promise<void> {
    const deadline = performance.now() + 120_000
    while (this.run(["get", "--raw=/readyz"]).status !== 0) {
      if (performance.now() > deadline) throw new Error(`The API server does not answer:\n${this.#program.output}`)
      const { promise, resolve } = Promise.withResolvers<void>()
      setTimeout(resolve, 500)
      await promise
    }
  }

  /** Runs kubectl. */
  run(args: ReadonlyArray<string>, input = "") {
    const env = { ...process.env, HOME: this.#folder, KUBECONFIG: join(this.#folder, "none") }
    return spawnSync("kubectl", [...args, ...this.#flags], { encoding: "utf8", input, env, timeout: 120_000 })
  }

  /** Output of kubectl, with its warnings. Fails unless it exits with 0. */
  kubectl(args: ReadonlyArray<string>, input = ""): string {
    const { status, stdout, stderr } = this.run(args, input)
    if (status !== 0) throw new Error(`kubectl ${args.join(" ")} exited with ${status}:\n${stdout}${stderr}`)
    return stdout + stderr
  }

  /** Whether the server would accept the documents; its answer, one line for each. */
  accepts(documents: string): ReadonlyArray<string> {
    const flags = ["apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename=-"]
    return this.kubectl(flags, documents).trim().split("\n")
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#program.signal("SIGKILL")
    await this.#program.ended
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
