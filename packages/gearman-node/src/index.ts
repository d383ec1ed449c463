export { Admin, type FunctionStatus, type WorkerInfo } from './admin/admin.ts';
export { Client, type ClientOptions, type JobStatus, type SubmitOptions } from './client/client.ts';
export { Job, type JobEvent } from './client/job.ts';
export { DEFAULT_PORT, formatAddress, type ServerAddress } from './connection/server-address.ts';
export {
  ConnectionError,
  GEARMAN_ERRORS,
  GearmanError,
  type GearmanErrorCode,
  JobExceptionError,
  JobFailedError,
  JobFailure,
  JobLostError,
  ProtocolError,
  ServerError,
} from './errors.ts';
export type { Logger } from './logger.ts';
export { JobServer, type JobServerOptions } from './server/job-server.ts';
export type { JobHandler, JobResult } from './worker/job-outcome.ts';
export { Worker, type WorkerEvents, type WorkerOptions } from './worker/worker.ts';
export type { WorkerJob } from './worker/worker-job.ts';
