/** Private to the packages of this repository, which depend on the exact version. It may change in any release. */

export {
  attestationDirectory,
  BUILD_DOCUMENT,
  checkAttestationName,
  conversionDocument,
  MAX_ATTESTATION_SIZE,
  packageListPath,
  readAttestation,
  writeAttestation,
} from './attestation.ts';
export { REQUIRE_ATTESTATION } from './attestation-gate.ts';
export { metered } from './bandwidth-limit.ts';
export { BUILD_LOG_LIMIT, BuildLog, LOG_BEGIN, screenshotPath, uploadLogName } from './build/build-log.ts';
export { checkedVariables, hiddenTexts, variableError } from './build/command-environment.ts';
export { fileDigest } from './build/file-digest.ts';
export { fileMaterial } from './build/file-material.ts';
export { formatsToMake } from './build/formats-to-make.ts';
export { createMask, visible } from './build/mask.ts';
export { type DatedImage, newestBuildFirst } from './build-order.ts';
export { MAX_TIMER_DELAY, unlessAborted, withAbort, withTimeout } from './cancellation.ts';
export { endProcesses } from './cleanup/processes.ts';
export { checkExternalId, checkImageName, noImage } from './cloud/image-errors.ts';
export { codeOfStatus } from './cloud-error.ts';
export type { FullBuildContext } from './context.ts';
export { checkFreeSpace, checkImagesDirectory } from './diagnosis/check-directory.ts';
export { checkDiskImage, checkKvm, checkProgram, INSTALLATIONS } from './diagnosis/check-host.ts';
export { attempt, checkClock, checkQuota, runCheck } from './diagnosis/check-result.ts';
export { LIST_PACKAGES } from './dib-elements.ts';
export { type DirectoryManifest, describeManifest, foreignImage, MANIFEST } from './directory/manifest.ts';
export { type DiskBlock, sendBlocks } from './disk-blocks.ts';
export { syncToDisk, writeDurably } from './durable.ts';
export { BUILD_TIMEOUT, parseDuration } from './duration.ts';
export { errorMessage } from './errors.ts';
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
export { Digester } from './hashed-reader/digester.ts';
export { SteadyFile } from './hashed-reader/steady-file.ts';
export { checksumsOf, hashed } from './hashed-reader.ts';
export {
  asNetworkError,
  atOrigin,
  type NetworkErrorKind,
  noResponse,
  staysWithHost,
} from './http/http-client.ts';
export { listPages, PAGE_SIZES, readBounded } from './http/list-pages.ts';
export {
  attemptText,
  type Retry,
  RetryBudget,
  reportRetry,
  retryAfterSeconds,
  retryText,
  SYSTEM_CLOCK,
  watchRetries,
} from './http/retry-policy.ts';
export { type IssuedToken, TokenKeeper } from './http/token-keeper.ts';
export { filterEntry, IMAGE_FILTERS, matchesGlob } from './image-filter/image-filter.ts';
export {
  checkImageId,
  type ImportedBuild,
  imageIdError,
  importedImageId,
  parseImportedImageId,
} from './image-id.ts';
export { cloudImageName, fileTags, imageTags, readImageTags } from './image-tags.ts';
export { CloudInstance, type MachineCloud, type MachineSite } from './instance/cloud-instance.ts';
export { CloudInstances } from './instance/cloud-instances.ts';
export {
  type FoundLaunch,
  type LaunchRecord,
  launchTags,
  ownerDigest,
  readLaunch,
} from './instance/launch-record.ts';
export { waitForPort } from './instance/wait-for-port.ts';
export { createAjv, parseJson, utcTime } from './json-reader.ts';
export { KeyedQueue } from './keyed-queue.ts';
export { MANIFEST as IMAGE_MANIFEST } from './manifest.ts';
export {
  BUILD_LOG,
  IMAGE_DIRECTORY,
  IMAGE_FILE,
  limitMode,
  makeDirectory,
  makeStateDirectory,
  STATE_FILE,
} from './modes.ts';
export { nearestName } from './nearest-name.ts';
export { foreignPart, openOwnFile, UNTRICKED } from './ownership.ts';
export { describeEnd, runCommand, startError } from './process/command.ts';
export { DecisiveLines } from './process/decisive-lines.ts';
export { findProgram } from './process/find-program.ts';
export { DIB_VARIABLES, hiddenValues, isPublicVariable } from './process/hidden-values.ts';
export { environmentIn, INHERITED_VARIABLES, inheritedEnvironment } from './process/inherited-environment.ts';
export { LineSplitter, readLines } from './process/line-splitter.ts';
export { runSecretCommand } from './process/secret-command.ts';
export { partDone, portion } from './progress.ts';
export { machineArguments, optionValue, QEMU } from './qemu/machine-arguments.ts';
export { DamagedRecordError, RecordDirectory, RecordType } from './record-directory.ts';
export { imageFileName, Layout } from './repository/layout.ts';
export { Mutex } from './repository/mutex.ts';
export { safeName } from './repository/state-directory.ts';
export { NUMBER, objectOf, readSettings, scalarText, TEXT } from './settings-schema.ts';
export { shellWords } from './shell-words.ts';
export { SILENT_LOGGER } from './silent-logger.ts';
export { SingleFlight } from './single-flight.ts';
export { inSlices } from './slices.ts';
export { withNewFile, writeSparse } from './sparse.ts';
export { asImageError, errnoOf, unlessMissing } from './system-error.ts';
