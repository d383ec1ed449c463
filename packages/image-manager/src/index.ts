export type {
  ManagedDiskImage,
  ManagedProvider,
  ManagedProviderImage,
  ManagerConfiguration,
  Timing,
} from './configuration.ts';
export type { ImageDocument } from './documents.ts';
export { StoreError, type StoreErrorCode } from './errors.ts';
export { operatorCancellation, stopAtBuilder } from './gearman/cancellation.ts';
export { ImageManager, type ImageManagerOptions } from './image-manager.ts';
export type { ManagerEvent, RetriedStep } from './manager-event.ts';
export type { UnrecordedImage } from './orphans/find-orphans.ts';
export type { LaterBuild, Observation, OfferedFunctions, Plan, Step, Wait } from './planning/pass.ts';
export { plan } from './planning/plan.ts';
export { newestFirst } from './planning/survey.ts';
export { listUnrecordedImages, type PreviewOptions, previewPlan } from './preview.ts';
export {
  type Build,
  type ManagerState,
  type Pause,
  type PendingRequest,
  type Request,
  type Upload,
  whyPaused,
} from './records.ts';
export { rollback, rollbackChoices } from './request-handler.ts';
export {
  type ExportedDocument,
  type ExportedState,
  exportDocuments,
  exportState,
  importState,
} from './store/exported-state.ts';
export type { Leadership, ManagerLeadership, StateChange } from './store/leadership.ts';
export type { ManagerStore, StateStore } from './store/state-store.ts';
export { diagnoseStore, openStateStore } from './store/stores.ts';
