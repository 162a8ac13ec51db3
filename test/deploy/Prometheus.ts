/** A Prometheus that scrapes servers of a test twice a second. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort, Program } from "../Program.ts"

export interface Target {
  /** HOST:PORT. */
  readonly address: string
  readonly labels?: Readonly<Record<string, string>>
}

export interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: number
}

export class Prometheus implements AsyncDisposable {
  readonly #program: Program
  readonly #folder: string
  readonly #port: number

  private constructor(program: Program, folder: string, port: number) {
    this.#program = program
    this.#folder = folder
    this.#port = port
  }

  /** `rules`: text of a file of rules. The job is `nereid`. */
  static async start(targets: ReadonlyArray<Target>, rules = ""): Promise<Prometheus> {
    const folder = mkdtempSync(join(tmpdir(), "nereid-prometheus-"))
    const port = await freePort()
    writeFileSync(join(folder, "rules.yaml"), rules)
    const configs = targets.map(({ address, labels = {} }) => ({ targets: [address], labels }))
    writeFileSync(
      join(folder, "prometheus.yaml"),
      `global: { scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms }
rule_files: [rules.yaml]
scrape_configs: [{ job_name: nereid, static_configs: ${JSON.stringify(configs)} }]
`,
    )
    const args = [
      `--config.file=${join(folder, "prometheus.yaml")}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ]
    const program = new Program(args, {}, folder, "prometheus")
    await program.match(/Server is ready/)
    return new Prometheus(program, folder, port)
  }

  /** The data of a reply of its interface. */
  async get(path: string, parameters: Readonly<Record<string, string>> = {}) {
    const query = new URLSearchParams(parameters)
    const response = await fetch(`http://127.0.0.1:${this.#port}/api/v1/${path}?${query}`)
    const { status, error, data } = JSON.parse(await response.text())
    if (status !== "success") throw new Error(`${path} ${query}: ${error}`)
    return data
  }

  /** The elements of a vector. */
  async query(query: string): Promise<ReadonlyArray<Sample>> {
    const { result }: { result: ReadonlyArray<{ metric: Sample["metric"]; value: [number, string] }> } = await this.get(
      "query",
      { query },
    )
    return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program[Symbol.asyncDispose]()
    rmSync(this.#folder, { recursive: true })
  }
}
