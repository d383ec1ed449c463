/** Helpers that the other packages of this project share. They may change in any release. */
export {
  ATTESTATIONS,
  attestationDirectory,
  BUILD_DOCUMENT,
  checkAttestationName,
  conversionDocument,
  MAX_ATTESTATION_SIZE,
  packageListPath,
  readAttestation,
  writeAttestation,
} from './attestation.ts';
export {
  type AttestationGate,
  type GatedFile,
  REQUIRE_ATTESTATION,
  type RequiredAttestation,
} from './attestation-gate.ts';
export { BandwidthLimit, metered } from './bandwidth-limit.ts';
export { BuildLog, LOG_BEGIN, screenshotPath, uploadLogName } from './build/build-log.ts';
export { checkedVariables, hiddenTexts, variableError } from './build/command-environment.ts';
export { fileDigest } from './build/file-digest.ts';
export { fileMaterial } from './build/file-material.ts';
export { formatsToMake } from './build/formats-to-make.ts';
export { createMask, visible } from './build/mask.ts';
export { stripCredentials } from './build/material-address.ts';
export { gitUri } from './build/source-repository.ts';
export { type DatedImage, newestBuildFirst } from './build-order.ts';
export { MAX_TIMER_DELAY, signalOf, unlessAborted, withAbort, withTimeout } from './cancellation.ts';
export { endProcesses } from './cleanup/processes.ts';
export { type CloudImage, cloudImage } from './cloud/cloud-image.ts';
export {
  type CloudClaim,
  type CloudEntry,
  CloudImages,
  type CloudImagesOptions,
  type CloudUpload,
  type UploadPart,
} from './cloud/cloud-images.ts';
export { checkExternalId, checkImageName, noImage } from './cloud/image-errors.ts';
export { type PollOptions, poll } from './cloud/poll.ts';
export { UploadRecords } from './cloud/upload-records.ts';
export {
  CloudError,
  type CloudErrorCode,
  type CloudErrorOptions,
  cloudError,
  codeOfStatus,
  type RemedyTable,
  remedyFor,
  unlessAbsent,
} from './cloud-error.ts';
export type { FullBuildContext } from './context.ts';
export { checkDirectory, checkImagesDirectory, checkFreeSpace } from './diagnosis/check-directory.ts';
export { checkDiskImage, checkKvm, checkProgram, INSTALLATIONS } from './diagnosis/check-host.ts';
export {
  attempt,
  type CheckArea,
  checkClock,
} from './diagnosis/check-result.ts';
export { LIST_PACKAGES } from './dib-elements.ts';
export {
  type DirectoryManifest,
  describeManifest,
  foreignImage,
  MANIFEST,
} from './directory/manifest.ts';
export { type BlockOptions, type DiskBlock, sendBlocks } from './disk-blocks.ts';
export type { ImageValidation } from './disk-image.ts';
export { syncToDisk, writeDurably } from './durable.ts';
export { BUILD_TIMEOUT, parseDuration } from './duration.ts';
export { formatBytes } from './format-bytes.ts';
export { checkDisk, checkFormat, checkSelfContained } from './formats/check-format.ts';
export {
  checkDiskSize,
  conversionSource,
  convertImage,
  DEFAULT_MAX_DISK_SIZE,
  isConvertible,
} from './formats/convert.ts';
export { type DiskFile, dataExtents } from './formats/disk-information.ts';
export { formatOfExtension, formatRow, isImageFormat } from './formats.ts';
export { Digester, type HashBuffer } from './hashed-reader/digester.ts';
export { SteadyFile } from './hashed-reader/steady-file.ts';
export { checksumsOf } from './hashed-reader.ts';
export { HttpAgent } from './http/http-agent.ts';
export {
  atOrigin,
  type HttpResponse,
  HttpClient,
  type HttpRequest,
  type NetworkErrorKind,
  asNetworkError,
  noResponse,
  staysWithHost,
} from './http/http-client.ts';
export {
  type ListOptions,
  type ListPage,
  listAll,
  listPages,
  PAGE_SIZES,
  type ResponseMeter,
  readBounded,
  responseMeter,
} from './http/list-pages.ts';
export {
  attemptText,
  type Clock,
  type Retry,
  RetryBudget,
  type RetryLimits,
  RetryPolicy,
  reportRetry,
  retryAfterSeconds,
  retryText,
  SYSTEM_CLOCK,
  watchRetries,
} from './http/retry-policy.ts';
export {
  combineFilters,
  type FilterEntry,
  filterEntry,
  IMAGE_FILTERS,
  matchesGlob,
  OWN_ACCOUNT,
} from './image-filter/image-filter.ts';
export type { LatestImage } from './image-filter/latest-image.ts';
export {
  checkImageId,
  type ImportedBuild,
  imageIdError,
  importedImageId,
  parseImportedImageId,
} from './image-id.ts';
export {
  cloudImageName,
  fileTags,
  IMAGE_TAGS,
  imageTags,
  readImageTags,
  type TaggedImage,
} from './image-tags.ts';
export type { Probe, SaveOptions } from './instance/instance-provider.ts';
export { waitForPort } from './instance/wait-for-port.ts';
export { createAjv, JsonReader, parseJson, utcTime } from './json-reader.ts';
export { KeyedQueue } from './keyed-queue.ts';
export { MANIFEST as IMAGE_MANIFEST, type Manifest } from './manifest.ts';
export { BUILD_LOG, limitMode, makeDirectory, makeStateDirectory, STATE_FILE } from './modes.ts';
export type {
  BuildRequest,
  CloudImageEntry,
  CloudImageKeys,
  ImageChoice,
  ProviderImages,
  ProviderServices,
} from './modules.ts';
export { nearestName } from './nearest-name.ts';
export { foreignFile, foreignPart, openOwnFile, UNTRICKED } from './ownership.ts';
export { runCommand, startError } from './process/command.ts';
export { DecisiveLines } from './process/decisive-lines.ts';
export { DIB_VARIABLES, hiddenValues, isPublicVariable } from './process/hidden-values.ts';
export {
  environmentIn,
  INHERITED_VARIABLES,
  inheritedEnvironment,
} from './process/inherited-environment.ts';
export { LineSplitter } from './process/line-splitter.ts';
export { partDone, portion, steadyProgress } from './progress.ts';
export {
  type Accelerator,
  type MachineSettings,
  machineArguments,
  optionValue,
  QEMU,
} from './qemu/machine-arguments.ts';
export { DamagedRecordError, RecordDirectory, RecordType } from './record-directory.ts';
export { imageFileName, Layout } from './repository/layout.ts';
export { Mutex } from './repository/mutex.ts';
export { safeName } from './repository/state-directory.ts';
export { readSettings, type SettingsSchema } from './settings-schema.ts';
export { shellWords } from './shell-words.ts';
export { SingleFlight } from './single-flight.ts';
export { inSlices } from './slices.ts';
export { isZero, writeSparse } from './sparse.ts';
export { asImageError, errnoOf, unlessMissing } from './system-error.ts';
export type { CheckOptions, DiscardOptions, ImageKey } from './types.ts';
