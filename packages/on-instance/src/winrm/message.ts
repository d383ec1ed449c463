import type { Document, Element } from '@xmldom/xmldom';
import { type Xml, xml } from './xml.ts';

const SHELL = 'http://schemas.microsoft.com/wbem/wsman/1/windows/shell';

/** Namespaces of [MS-WSMV]. */
export const NAMESPACES = {
  soap: 'http://www.w3.org/2003/05/soap-envelope',
  addressing: 'http://schemas.xmlsoap.org/ws/2004/08/addressing',
  management: 'http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd',
  fault: 'http://schemas.microsoft.com/wbem/wsman/1/wsmanfault',
  shell: SHELL,
};

/** Resource URI of a shell that interprets commands with `cmd.exe`. */
const COMMAND_SHELL = `${SHELL}/cmd`;

const ANONYMOUS = `${NAMESPACES.addressing}/role/anonymous`;

/** Maximum size of a response in bytes, which is the default limit of Windows. */
const MAX_RESPONSE_SIZE = 512_000;

/** Seconds after which the service responds even without output. */
export const OPERATION_TIMEOUT = 20;

const ACTIONS = {
  Create: 'http://schemas.xmlsoap.org/ws/2004/09/transfer/Create',
  Delete: 'http://schemas.xmlsoap.org/ws/2004/09/transfer/Delete',
  Command: `${SHELL}/Command`,
  Receive: `${SHELL}/Receive`,
  Send: `${SHELL}/Send`,
  Signal: `${SHELL}/Signal`,
};

export interface WinrmMessage {
  readonly action: keyof typeof ACTIONS;
  /** Id of the shell; absent in a request that creates one. */
  readonly shellId?: string;
  readonly options?: Readonly<Record<string, string>>;
  readonly body: Xml;
}

/** Returns the document to send. */
export function envelope(
  { action, shellId, options = {}, body }: WinrmMessage,
  url: string,
  messageId: string,
): string {
  const selectors =
    shellId === undefined
      ? []
      : [xml`<w:SelectorSet><w:Selector Name="ShellId">${shellId}</w:Selector></w:SelectorSet>`];
  const optionList = Object.entries(options).map(
    ([name, value]) => xml`<w:Option Name="${name}">${value}</w:Option>`,
  );
  const optionSet = optionList.length === 0 ? [] : [xml`<w:OptionSet>${optionList}</w:OptionSet>`];
  return xml`<?xml version="1.0" encoding="UTF-8"?>
<s:Envelope xmlns:s="${NAMESPACES.soap}" xmlns:a="${NAMESPACES.addressing}" xmlns:w="${NAMESPACES.management}" xmlns:rsp="${NAMESPACES.shell}"><s:Header><a:To>${url}</a:To><a:ReplyTo><a:Address s:mustUnderstand="true">${ANONYMOUS}</a:Address></a:ReplyTo><a:Action s:mustUnderstand="true">${ACTIONS[action]}</a:Action><a:MessageID>uuid:${messageId}</a:MessageID><w:ResourceURI s:mustUnderstand="true">${COMMAND_SHELL}</w:ResourceURI><w:MaxEnvelopeSize s:mustUnderstand="true">${String(MAX_RESPONSE_SIZE)}</w:MaxEnvelopeSize><w:OperationTimeout>PT${String(OPERATION_TIMEOUT)}S</w:OperationTimeout><w:Locale xml:lang="en-US" s:mustUnderstand="false"/>${selectors}${optionSet}</s:Header><s:Body>${body}</s:Body></s:Envelope>`
    .text;
}

/** Output and state of a command since the previous request. */
export interface CommandOutput {
  /** Output in the order of writing, as far as the service knows it. */
  readonly pieces: readonly { readonly stream: 'stdout' | 'stderr'; readonly bytes: Buffer }[];
  readonly isDone: boolean;
  /** Exit code of the command. Absent while it runs, and if it was terminated. */
  readonly exitCode?: number;
}

/** A fault response of the service. */
export interface Fault {
  /** True if the operation only timed out without output. */
  readonly isTimeout: boolean;
  readonly reason: string;
}

const DONE = `${NAMESPACES.shell}/CommandState/Done`;

/** ERROR_WSMAN_OPERATION_TIMEDOUT. */
const TIMED_OUT = '2150858793';

/** Returns undefined if the response does not belong to that request. */
export function outputIn(response: Document): CommandOutput | undefined {
  if (all(response, 'shell', 'ReceiveResponse').length === 0) return undefined;
  const pieces = all(response, 'shell', 'Stream').map((element) => ({
    stream: element.getAttribute('Name') === 'stderr' ? ('stderr' as const) : ('stdout' as const),
    bytes: Buffer.from(element.textContent ?? '', 'base64'),
  }));
  const state = all(response, 'shell', 'CommandState')[0];
  const exitCode = text(all(response, 'shell', 'ExitCode')[0]);
  return {
    pieces,
    isDone: state?.getAttribute('State') === DONE,
    ...(exitCode !== undefined && { exitCode: Number(exitCode) }),
  };
}

/** Returns undefined if the response is not a fault. */
export function faultIn(response: Document): Fault | undefined {
  if (all(response, 'soap', 'Fault').length === 0) return undefined;
  const subcodes = all(response, 'soap', 'Value').map((value) => text(value)?.split(':').at(-1));
  const code = all(response, 'fault', 'WSManFault')[0]?.getAttribute('Code');
  const said = text(all(response, 'soap', 'Text')[0]) ?? text(all(response, 'fault', 'Message')[0]);
  return {
    isTimeout: code === TIMED_OUT || subcodes.includes('TimedOut'),
    reason: `${said ?? 'it gave no reason'} (${code ?? subcodes.at(-1) ?? 'no code'})`,
  };
}

/** Elements of a document, in order. */
export function all(response: Document, namespace: keyof typeof NAMESPACES, name: string): Element[] {
  return [...response.getElementsByTagNameNS(NAMESPACES[namespace], name)];
}

export function text(element: Element | undefined): string | undefined {
  const content = element?.textContent?.replaceAll(/\s+/g, ' ').trim();
  return content === '' ? undefined : content;
}
