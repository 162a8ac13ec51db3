/**
 * Reads a SETTINGS frame (RFC 9113, 6.5). Of a setting that comes twice, the last one counts, and
 * of two table sizes the smaller one, which is within both.
 */
import { ConnectionError, ErrorCode } from "../frame/ErrorCode.ts"
import { defaults, maxFrameSize as largestFrame, maxWindow, readUint32, Setting } from "../frame/Frame.ts"

export interface PeerSettings {
  headerTableSize: number | undefined
  maxConcurrentStreams: number | undefined
  initialWindowSize: number | undefined
  maxFrameSize: number | undefined
}

/** `isFromClient`: only a client may enable pushes. */
export const read = (payload: Uint8Array, isFromClient: boolean): PeerSettings => {
  if (payload.length % 6 !== 0) throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS has a wrong length")
  const settings: PeerSettings = {
    headerTableSize: undefined,
    maxConcurrentStreams: undefined,
    initialWindowSize: undefined,
    maxFrameSize: undefined,
  }
  for (let offset = 0; offset < payload.length; offset += 6) {
    const id = ((payload[offset] ?? 0) << 8) | (payload[offset + 1] ?? 0)
    const value = readUint32(payload, offset + 2)
    switch (id) {
      case Setting.HEADER_TABLE_SIZE:
        settings.headerTableSize = Math.min(value, settings.headerTableSize ?? value)
        break
      case Setting.ENABLE_PUSH:
        if (value > (isFromClient ? 1 : 0)) throw invalid(ErrorCode.PROTOCOL_ERROR, "ENABLE_PUSH", value)
        break
      case Setting.MAX_CONCURRENT_STREAMS:
        settings.maxConcurrentStreams = value
        break
      case Setting.INITIAL_WINDOW_SIZE:
        if (value > maxWindow) throw invalid(ErrorCode.FLOW_CONTROL_ERROR, "INITIAL_WINDOW_SIZE", value)
        settings.initialWindowSize = value
        break
      case Setting.MAX_FRAME_SIZE:
        if (value < defaults.frameSize || value > largestFrame) {
          throw invalid(ErrorCode.PROTOCOL_ERROR, "MAX_FRAME_SIZE", value)
        }
        settings.maxFrameSize = value
        break
      default:
        break
    }
  }
  return settings
}

const invalid = (code: number, setting: string, value: number) =>
  new ConnectionError(code, `SETTINGS_${setting} is ${value}`)
