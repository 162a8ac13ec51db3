/**
 * Object stores as others have written them, each a process with an empty bucket: moto for S3, fake-gcs-server for
 * Google Cloud Storage, and Azurite for Azure Blob Storage. moto and Azurite check signatures, fake-gcs-server checks
 * none. For Hugging Face, of which there is no emulator, a server of the tests.
 */
import { createHmac } from "node:crypto"
import { freePort, Program } from "../Program.ts"
import { HubServer } from "./HubServer.ts"
import { isInstalled } from "./Tools.ts"

type Environment = Readonly<Record<string, string>>

export interface Emulator extends AsyncDisposable {
  readonly port: number
  readonly put: (key: string, content: Uint8Array) => Promise<void>
  /** URL of the repository, through a port in front of the store. */
  readonly url: (port: number) => string
  /** With valid credentials. */
  readonly environment: (port: number) => Environment
  /** With credentials that were valid once; undefined for a store that checks none. */
  readonly expired?: () => Promise<Environment>
  /** Where the store checks keys that a test can revoke. */
  readonly keys?: {
    readonly issue: () => Promise<AwsKey>
    readonly revoke: (key: AwsKey) => Promise<void>
  }
}

export interface AwsKey {
  readonly id: string
  readonly secret: string
}

export interface EmulatorProgram {
  readonly name: string
  readonly isMissing: boolean
  readonly start: () => Promise<Emulator>
}

const bucket = "models"

/** Starts a program, and waits until its port answers. */
const startProgram = async (program: string, args: ReadonlyArray<string>, port: number, variables = {}) => {
  const started = new Program(args, variables, undefined, program)
  let isOver = false
  void started.ended.then(() => (isOver = true))
  const origin = `http://127.0.0.1:${port}`
  for (
    let attempt = 0;
    !(await fetch(origin).then(
      () => true,
      () => false,
    ));
    attempt++
  ) {
    if (isOver || attempt > 600) throw new Error(`${program} does not answer:\n${started.output}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return { origin, program: started }
}

const encode = (key: string): string => key.split("/").map(encodeURIComponent).join("/")

/** Fails unless the store is content. */
const request = async (
  method: string,
  url: string,
  body?: Uint8Array<ArrayBuffer> | string,
  headers: Environment = {},
) => {
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body }) })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`)
  return text
}

/** moto checks signatures and rights, except while a test changes something. */
const moto = async (): Promise<Emulator> => {
  const port = await freePort()
  const { origin, program } = await startProgram("moto_server", ["-H", "127.0.0.1", "-p", String(port)], port)
  const unchecked = async (change: () => Promise<string>): Promise<string> => {
    await request("POST", `${origin}/moto-api/reset-auth`, "inf")
    const result = await change()
    await request("POST", `${origin}/moto-api/reset-auth`, "0")
    return result
  }
  /** moto finds the service of a request in its credentials. */
  const authorization = (service: string) =>
    `AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/${service}/aws4_request, SignedHeaders=host, Signature=any`
  const identity = (fields: Environment): Promise<string> =>
    unchecked(() =>
      request(
        "POST",
        origin,
        new URLSearchParams({ Version: "2010-05-08", UserName: "reader", ...fields }).toString(),
        {
          authorization: authorization("iam"),
          "content-type": "application/x-www-form-urlencoded",
        },
      ),
    )
  const issue = async (): Promise<AwsKey> => {
    const text = await identity({ Action: "CreateAccessKey" })
    const [, id = ""] = /<AccessKeyId>(.*?)</.exec(text) ?? []
    const [, secret = ""] = /<SecretAccessKey>(.*?)</.exec(text) ?? []
    return { id, secret }
  }
  const revoke = async ({ id }: Pick<AwsKey, "id">) =>
    void (await identity({ Action: "DeleteAccessKey", AccessKeyId: id }))
  await unchecked(() => request("PUT", `${origin}/${bucket}`))
  await identity({ Action: "CreateUser" })
  const statement = { Effect: "Allow", Action: ["s3:ListBucket", "s3:GetObject"], Resource: "*" }
  const PolicyDocument = JSON.stringify({ Version: "2012-10-17", Statement: [statement] })
  await identity({ Action: "PutUserPolicy", PolicyName: "reads", PolicyDocument })
  const key = await issue()
  return {
    port,
    put: async (path, content) => {
      const headers = { authorization: authorization("s3") }
      await unchecked(() => request("PUT", `${origin}/${bucket}/r/${encode(path)}`, Buffer.from(content), headers))
    },
    url: (gate) => `s3://http://127.0.0.1:${gate}/${bucket}/r`,
    environment: () => ({
      AWS_ACCESS_KEY_ID: key.id,
      AWS_SECRET_ACCESS_KEY: key.secret,
      AWS_CONFIG_FILE: "/nowhere",
      AWS_SHARED_CREDENTIALS_FILE: "/nowhere",
    }),
    expired: async () => {
      const { id, secret } = await issue()
      await revoke({ id })
      return { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret }
    },
    keys: { issue, revoke },
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  }
}

const google = async (): Promise<Emulator> => {
  const port = await freePort()
  const args = ["-scheme", "http", "-host", "127.0.0.1", "-port", String(port), "-backend", "memory"]
  const { origin, program } = await startProgram("fake-gcs-server", args, port)
  await request("POST", `${origin}/storage/v1/b`, JSON.stringify({ name: bucket }))
  return {
    port,
    put: async (key, content) => {
      const upload = `${origin}/upload/storage/v1/b/${bucket}/o?uploadType=media&name=${encodeURIComponent(`r/${key}`)}`
      await request("POST", upload, Buffer.from(content))
    },
    url: () => `gs://${bucket}/r`,
    environment: (gate) => ({ STORAGE_EMULATOR_HOST: `127.0.0.1:${gate}` }),
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  }
}

/** Public, and the same in every Azurite. */
const azureAccount = "devstoreaccount1"
export const azureKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

/** A shared access signature of the account for everything, until a time. */
const azureSignature = (expiresAt: Date): string => {
  const version = "2021-12-02"
  const expiry = `${expiresAt.toISOString().slice(0, 19)}Z`
  const fields = [azureAccount, "rwdlac", "b", "sco", "", expiry, "", "http,https", version, "", ""]
  const signature = createHmac("sha256", Buffer.from(azureKey, "base64")).update(fields.join("\n")).digest("base64")
  const query = { sv: version, ss: "b", srt: "sco", sp: "rwdlac", se: expiry, spr: "http,https", sig: signature }
  return new URLSearchParams(query).toString()
}

const azure = async (): Promise<Emulator> => {
  const port = await freePort()
  const options = ["--inMemoryPersistence", "--disableTelemetry", "--silent", "--skipApiVersionCheck"]
  const args = ["--blobHost", "127.0.0.1", "--blobPort", String(port), ...options]
  const { origin, program } = await startProgram("azurite-blob", args, port)
  const container = `${origin}/${azureAccount}/${bucket}`
  const signature = azureSignature(new Date(Date.now() + 3_600_000))
  await request("PUT", `${container}?restype=container&${signature}`)
  return {
    port,
    put: async (key, content) => {
      const headers = { "x-ms-blob-type": "BlockBlob" }
      await request("PUT", `${container}/r/${encode(key)}?${signature}`, Buffer.from(content), headers)
    },
    url: () => `as://${azureAccount}/${bucket}/r`,
    environment: (gate) => ({
      AZURE_STORAGE_BLOB_ENDPOINT: `http://127.0.0.1:${gate}/${azureAccount}`,
      AZURE_STORAGE_KEY: azureKey,
    }),
    expired: async () => ({
      AZURE_STORAGE_KEY: "",
      AZURE_STORAGE_SAS_TOKEN: azureSignature(new Date(Date.now() - 60_000)),
    }),
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  }
}

const hub = async (): Promise<Emulator> => {
  const server = await HubServer.start()
  return {
    port: server.port,
    put: async (key, content) => server.put(`r/${key}`, content),
    url: () => `hf://${HubServer.model}/r`,
    environment: (gate) => ({ HF_ENDPOINT: `http://127.0.0.1:${gate}`, HF_TOKEN: HubServer.token }),
    expired: async () => ({ HF_TOKEN: "hf_that_has_expired" }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

export const emulators: ReadonlyArray<EmulatorProgram> = [
  { name: "S3 (moto)", isMissing: !isInstalled("moto_server", "--help"), start: moto },
  { name: "Google Cloud Storage (fake-gcs-server)", isMissing: !isInstalled("fake-gcs-server", "-h"), start: google },
  { name: "Azure Blob Storage (Azurite)", isMissing: !isInstalled("azurite-blob", "--version"), start: azure },
  { name: "Hugging Face (a server of the tests)", isMissing: false, start: hub },
]
