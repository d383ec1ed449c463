/** Helpers for the implementation of builder and provider modules. Their interfaces are in the main entry. */
export { BandwidthLimit } from './bandwidth-limit.ts';
export { screenshotPath } from './build/build-log.ts';
export { checkedVariables } from './build/checked-variables.ts';
export { formatsToMake } from './build/formats-to-make.ts';
export {
  LONGEST_TIMER,
  runTaskGroup,
  signalOf,
  unlessAborted,
  withAbort,
  withTimeout,
} from './cancellation.ts';
export { createAjv } from './create-ajv.ts';
export { syncToDisk, UNFINISHED } from './durable.ts';
export { checkDiskSize, conversionSource, DEFAULT_LARGEST_DISK } from './formats/convert.ts';
export { type DiskFile, diskInformation } from './formats/disk-information.ts';
export { type Clock, SYSTEM_CLOCK } from './http/clock.ts';
export {
  type HttpAnswer,
  HttpClient,
  type HttpClientOptions,
  type HttpRequest,
  textOf,
} from './http/http-client.ts';
export { NetworkFailure, type NetworkFault, networkFailure } from './http/network-failure.ts';
export {
  RetryBudget,
  type RetryLimits,
  RetryPolicy,
  retryAfterSeconds,
} from './http/retry-policy.ts';
export { authorityOf } from './instance/authority-of.ts';
export { JsonReader, parseJson, utcTime } from './json-reader.ts';
export { metered } from './metered.ts';
export { BUILD_LOG, STATE_FILE } from './modes.ts';
export { LineSplitter } from './process/line-splitter.ts';
export { portion, steadyProgress } from './progress.ts';
export { DamagedRecord, RecordDirectory, RecordType } from './record-directory.ts';
export { imageFileName } from './repository/layout.ts';
export { Mutex } from './repository/mutex.ts';
export { safeName } from './repository/state-directory.ts';
export { SingleFlight } from './single-flight.ts';
export { errnoOf } from './system-error.ts';
export { createDigester } from './upload-source/create-digester.ts';
export type { Digester } from './upload-source/digests.ts';
export { type Slot, SlotRing } from './upload-source/slot-ring.ts';
