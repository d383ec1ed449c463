import { CommandError } from '../terms/command-error.ts';
import type { ExitReason } from '../terms/exit-codes.ts';

/** An error whose message is for the user. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly statusCode: number;

  constructor(statusCode: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.statusCode = statusCode;
  }
}

const STATUS: Readonly<Partial<Record<ExitReason, number>>> = {
  usage: 400,
  'not-found': 404,
  refused: 409,
  unreachable: 503,
};

/** Returns the status code of the response to an error. */
export function statusOf(error: unknown): number {
  if (error instanceof CommandError) return STATUS[error.exitReason] ?? 500;
  const { statusCode } = Object(error) as { statusCode?: unknown };
  return typeof statusCode === 'number' ? statusCode : 500;
}
