export { Admin, type AdminOptions } from './admin/admin.ts';
export type {
  FunctionPriorityStatus,
  FunctionStatus,
  QueuedJob,
  WorkerInfo,
} from './admin/admin-commands.ts';
export { Client, type ClientOptions, type JobStatus, type UniqueJobStatus } from './client/client.ts';
export type { JobEvent } from './client/job-events.ts';
export type { SubmitOptions } from './client/submission.ts';
export type { Job } from './client/submitted-job.ts';
export type { BackoffOptions } from './connection/paced-server.ts';
export type { PeerOptions } from './connection/peer-options.ts';
export { formatAddress, type ServerAddress } from './connection/server-address.ts';
export {
  ConnectionError,
  GEARMAN_ERRORS,
  GearmanError,
  type GearmanErrorCode,
  JobExceptionError,
  JobFailedError,
  JobLostError,
  ProtocolError,
  ServerError,
  WorkFailError,
} from './errors.ts';
export type { Logger } from './logger.ts';
export type { AccessRight, AccessRules } from './server/access-list.ts';
export { type CancelledJob, JobServer, type JobServerOptions } from './server/job-server.ts';
export type { ListenAddress } from './server/listener.ts';
export type { JobPriority } from './submit-packets.ts';
export { Worker, type WorkerEvents } from './worker/worker.ts';
export type { TimedFunction, WorkerFunction } from './worker/worker-function.ts';
export type { JobHandler, JobResult, WorkerJob } from './worker/worker-job.ts';
export type { WorkerOptions } from './worker/worker-options.ts';
