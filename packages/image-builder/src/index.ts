export { BaseImageBuilder, type BuildJob } from './base.ts';
export { variableFault } from './build/checked-variables.ts';
export { createMask } from './build/mask.ts';
export { visible } from './build/visible.ts';
export { byBuild, type DatedImage } from './build-order.ts';
export { checksumsOf } from './checksums.ts';
export { endProcesses, type ProcessTraits } from './cleanup/processes.ts';
export { COMMAND, CommandBuilder, type CommandSettings } from './command.ts';
export type { BuildContext, RunOptions } from './context.ts';
export type { DibSettings } from './dib/dib-settings.ts';
export { shellWords } from './dib/shell-words.ts';
export { DIB, DibBuilder } from './dib.ts';
export { DIRECTORY_MODULE } from './directory/directory-module.ts';
export { DirectoryProvider, type DirectoryProviderOptions } from './directory/directory-provider.ts';
export type { DirectoryManifest } from './directory/manifest.ts';
export type { DiskImage } from './disk-image.ts';
export { writeDurably } from './durable.ts';
export { parseDuration } from './duration.ts';
export { IMAGE_ERRORS, ImageError, type ImageErrorCode } from './errors.ts';
export { checkFormat } from './formats/check-format.ts';
export { type ConversionOptions, convertImage, isConvertible } from './formats/convert.ts';
export { type DiskDriver, type DiskHeader, readDiskHeader } from './formats/disk-header.ts';
export { checkDisk, checkSelfContained } from './formats/self-contained.ts';
export {
  FORMAT_NAMES,
  formatOfExtension,
  formatRow,
  IMAGE_FORMATS,
  type ImageFormat,
  type ImageFormatRow,
  isImageFormat,
} from './formats.ts';
export { type FilterEntry, type ImageFilter, SELF } from './image-filter/image-filter.ts';
export { type LatestImage, latestImage, type RefusedImage } from './image-filter/latest-image.ts';
export { filterEntry, parseImageFilter } from './image-filter/parse-filter.ts';
export { splitTags } from './image-filter/split-tags.ts';
export { checkImageId, imageIdFault, MAX_IMAGE_ID_BYTES } from './image-id.ts';
export { type ImportedBuild, importedImageId, parseImportedImageId } from './imported-image-id.ts';
export type {
  CapturedImage,
  CaptureRequest,
  Instance,
  InstanceAddress,
  InstanceProvider,
  InstanceState,
  LaunchRequest,
  Probe,
  SaveOptions,
  StoredCapture,
} from './instance/instance-provider.ts';
export { probeSsh } from './instance/probe-ssh.ts';
export { waitForPort } from './instance/wait-for-port.ts';
export { limitMode, makeStateDirectory } from './modes.ts';
export type {
  BuilderEntry,
  BuilderModule,
  BuilderService,
  BuilderServices,
  BuilderSite,
  BuildRequest,
  Diagnostic,
  ImageBuilderClass,
  ImageServices,
  InstanceServices,
  NeededProgram,
  PreparedProvider,
  ProviderEntry,
  ProviderHost,
  ProviderImages,
  ProviderModule,
  ProviderServices,
  Section,
  SettingsContext,
  ShortForm,
} from './modules.ts';
export { type CommandOptions, type CommandResult, runCommand, startError } from './process/command.ts';
export { INHERITED_VARIABLES, inheritedEnvironment, secretValues } from './process/inherited-environment.ts';
export {
  type Accelerator,
  type MachineSettings,
  machineArguments,
  optionValue,
  QEMU,
} from './qemu/machine-arguments.ts';
export { readImages } from './repository/read-images.ts';
export { ImageRepository, type ImageRepositoryEvents, type ImageRepositoryOptions } from './repository.ts';
export { type ObjectSchema, readSettings, type SettingsOf, type SettingsSchema } from './settings-schema.ts';
export { writeSparse } from './sparse.ts';
export { asImageError, unlessMissing } from './system-error.ts';
export type {
  CandidateOptions,
  Checksums,
  ClaimRequest,
  Image,
  ImageCandidate,
  ImageFile,
  ImageProvider,
  Leftover,
  Logger,
  OperationOptions,
  Progress,
  ProviderImage,
  Snapshot,
  UploadRequest,
  UploadResult,
} from './types.ts';
export type { DigestName, Digests } from './upload-source/digests.ts';
export { HashThreads } from './upload-source/hash-threads.ts';
export { openUploadSource, UploadSource, type UploadSourceOptions } from './upload-source.ts';
export type { BootValidation, ImageValidation } from './validation/validation-settings.ts';
