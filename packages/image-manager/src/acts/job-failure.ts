import { GearmanError, JobExceptionError } from '@nodepool-builder/gearman-node';
import { Hopeless } from '../gearman/hopeless.ts';

/** Codes of errors after which nothing more will be heard of a job; after others it may still run. */
const FINAL = new Set(['job-failed', 'job-exception', 'job-timeout']);

/** Why a job has failed, in words; undefined if that is not known: it has to be followed further. */
export function jobFailure(error: unknown, signal: AbortSignal): string | undefined {
  if (signal.aborted && signal.reason instanceof Hopeless) return signal.reason.message;
  if (error instanceof UnusableResultError) return error.message;
  if (!(error instanceof GearmanError) || !FINAL.has(error.code)) return undefined;
  return error instanceof JobExceptionError ? error.data.toString('utf8') : error.message;
}

/** A text in a builder's answer; undefined if it has none of that name. */
export function textIn(result: Buffer, key: string): string | undefined {
  try {
    const { [key]: value }: Record<string, unknown> = Object(JSON.parse(result.toString('utf8')));
    return typeof value === 'string' && value !== '' ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The builder said that the job is done, and nothing that one could use. */
export class UnusableResultError extends Error {
  override readonly name = 'UnusableResultError';
}
