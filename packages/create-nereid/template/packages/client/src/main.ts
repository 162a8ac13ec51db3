/**
 * Sends texts to the server, each of them one argument, and prints the responses. The environment variable SERVER_URL
 * overrides the URL of the server.
 */
import { shoutAll } from "./index.ts"

const { SERVER_URL = "grpc://localhost:8001" } = process.env
const [, , ...texts] = process.argv

for (const loud of await shoutAll(SERVER_URL, texts.length > 0 ? texts : ["hello"])) console.log(loud)
