import type { Document, Element } from '@xmldom/xmldom';
import { NAMESPACES } from './message.ts';

/** Output and state of a command since the previous request. */
export interface CommandOutput {
  /** In the order of writing, as far as the service knows it. */
  readonly pieces: readonly { readonly stream: 'stdout' | 'stderr'; readonly bytes: Buffer }[];
  readonly isDone: boolean;
  /** Absent while the command runs, and if it was terminated. */
  readonly exitCode?: number;
}

/** Refusal of the service. */
export interface Fault {
  /** Whether the operation only timed out without output. */
  readonly isTimeout: boolean;
  readonly reason: string;
}

const DONE = `${NAMESPACES.shell}/CommandState/Done`;

/** ERROR_WSMAN_OPERATION_TIMEDOUT. */
const TIMED_OUT = '2150858793';

/** Undefined if the answer has none. */
export function shellIdIn(answer: Document): string | undefined {
  return (
    text(all(answer, 'shell', 'ShellId')[0]) ??
    text(
      all(answer, 'management', 'Selector').find((selector) => selector.getAttribute('Name') === 'ShellId'),
    )
  );
}

/** Undefined if the answer has none. */
export function commandIdIn(answer: Document): string | undefined {
  return text(all(answer, 'shell', 'CommandId')[0]);
}

/** Undefined if the response is not an answer to that request. */
export function outputIn(answer: Document): CommandOutput | undefined {
  if (all(answer, 'shell', 'ReceiveResponse').length === 0) return undefined;
  const pieces = all(answer, 'shell', 'Stream').map((element) => ({
    stream: element.getAttribute('Name') === 'stderr' ? ('stderr' as const) : ('stdout' as const),
    bytes: Buffer.from(element.textContent ?? '', 'base64'),
  }));
  const state = all(answer, 'shell', 'CommandState')[0];
  const exitCode = text(all(answer, 'shell', 'ExitCode')[0]);
  return {
    pieces,
    isDone: state?.getAttribute('State') === DONE,
    ...(exitCode !== undefined && { exitCode: Number(exitCode) }),
  };
}

/** Undefined if the response is not a fault. */
export function faultIn(answer: Document): Fault | undefined {
  if (all(answer, 'soap', 'Fault').length === 0) return undefined;
  const subcodes = all(answer, 'soap', 'Value').map((value) => text(value)?.split(':').at(-1));
  const code = all(answer, 'fault', 'WSManFault')[0]?.getAttribute('Code');
  const said = text(all(answer, 'soap', 'Text')[0]) ?? text(all(answer, 'fault', 'Message')[0]);
  return {
    isTimeout: code === TIMED_OUT || subcodes.includes('TimedOut'),
    reason: `${said ?? 'it gave no reason'} (${code ?? subcodes.at(-1) ?? 'no code'})`,
  };
}

function all(answer: Document, namespace: keyof typeof NAMESPACES, name: string): Element[] {
  return [...answer.getElementsByTagNameNS(NAMESPACES[namespace], name)];
}

function text(element: Element | undefined): string | undefined {
  const content = element?.textContent?.replaceAll(/\s+/g, ' ').trim();
  return content === '' ? undefined : content;
}
