import { GearmanError, JobExceptionError } from '@nodepool-builder/gearman-node';
import { ImageGoneError } from '../gearman/run-job.ts';

/** Codes of errors that end a job; after any other error it may still run. */
const FINAL = new Set(['job-failed', 'job-exception', 'job-timeout']);

/** Returns why a job failed; undefined if it may still run. */
export function jobFailure(error: unknown, signal: AbortSignal): string | undefined {
  if (signal.aborted && signal.reason instanceof ImageGoneError) return signal.reason.message;
  if (error instanceof InvalidResultError) return error.message;
  if (!(error instanceof GearmanError) || !FINAL.has(error.code)) return undefined;
  return error instanceof JobExceptionError ? error.data.toString('utf8') : error.message;
}

/** Reads a text from the JSON that a builder returned; undefined if it has no text of that name. */
export function textIn(result: Buffer, key: string): string | undefined {
  try {
    const { [key]: value }: Record<string, unknown> = Object(JSON.parse(result.toString('utf8')));
    return typeof value === 'string' && value !== '' ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The builder reported success, but its result is missing something or contradicts the record. */
export class InvalidResultError extends Error {
  override readonly name = 'InvalidResultError';
}
