import type { Fault } from './fault.ts';
import { humanPath } from './schema-faults.ts';
import type { YamlDocument } from './yaml-document.ts';

/** What is wrong with what a JSON pointer leads to. */
export interface Finding {
  readonly pointer: string;
  /** Follows the path in the message: `is no http or https URL`. */
  readonly reason: string;
  readonly remedy: string;
  /** Default `error`. */
  readonly severity?: Fault['severity'];
}

/** A finding as it is told. */
export function toFault(
  document: YamlDocument,
  { pointer, reason, remedy, severity = 'error' }: Finding,
): Fault {
  return { ...document.positionOf(pointer), severity, reason: `${humanPath(pointer)} ${reason}`, remedy };
}
