import { type Xml, xml } from './xml.ts';

const SHELL = 'http://schemas.microsoft.com/wbem/wsman/1/windows/shell';

/** Namespaces of [MS-WSMV]. */
export const NAMESPACES: Readonly<Record<'soap' | 'addressing' | 'management' | 'fault' | 'shell', string>> =
  {
    soap: 'http://www.w3.org/2003/05/soap-envelope',
    addressing: 'http://schemas.xmlsoap.org/ws/2004/08/addressing',
    management: 'http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd',
    fault: 'http://schemas.microsoft.com/wbem/wsman/1/wsmanfault',
    shell: SHELL,
  };

/** Resource URI of a shell that interprets commands with `cmd.exe`. */
const COMMAND_SHELL = `${SHELL}/cmd`;

const ANONYMOUS = `${NAMESPACES.addressing}/role/anonymous`;

/** Longest response in bytes: the maximum that Windows allows by default. */
const LONGEST_ANSWER = 512_000;

/** Seconds after which the service responds even without output. */
export const OPERATION_TIMEOUT = 20;

type Action = 'Create' | 'Delete' | 'Command' | 'Receive' | 'Send' | 'Signal';

const ACTIONS: Readonly<Record<Action, string>> = {
  Create: 'http://schemas.xmlsoap.org/ws/2004/09/transfer/Create',
  Delete: 'http://schemas.xmlsoap.org/ws/2004/09/transfer/Delete',
  Command: `${SHELL}/Command`,
  Receive: `${SHELL}/Receive`,
  Send: `${SHELL}/Send`,
  Signal: `${SHELL}/Signal`,
};

/** A request. */
export interface WinrmMessage {
  readonly action: Action;
  /** Absent in a request that creates a shell. */
  readonly shellId?: string;
  readonly options?: Readonly<Record<string, string>>;
  readonly body: Xml;
}

/** Creates a shell with output in UTF-8. */
export function createShell(): WinrmMessage {
  return {
    action: 'Create',
    options: { WINRS_NOPROFILE: 'FALSE', WINRS_CODEPAGE: '65001' },
    body: xml`<rsp:Shell><rsp:InputStreams>stdin</rsp:InputStreams><rsp:OutputStreams>stdout stderr</rsp:OutputStreams></rsp:Shell>`,
  };
}

/** Deletes a shell and ends all its processes. */
export function deleteShell(shellId: string): WinrmMessage {
  return { action: 'Delete', shellId, body: xml`` };
}

/** Starts a command line of `cmd.exe`. */
export function startCommand(shellId: string, commandLine: string): WinrmMessage {
  return {
    action: 'Command',
    shellId,
    options: { WINRS_CONSOLEMODE_STDIN: 'FALSE', WINRS_SKIP_CMD_SHELL: 'FALSE' },
    body: xml`<rsp:CommandLine><rsp:Command>${commandLine}</rsp:Command></rsp:CommandLine>`,
  };
}

/** Requests output and state of a command. The response arrives when there is news. */
export function receiveOutput(shellId: string, commandId: string): WinrmMessage {
  return {
    action: 'Receive',
    shellId,
    body: xml`<rsp:Receive><rsp:DesiredStream CommandId="${commandId}">stdout stderr</rsp:DesiredStream></rsp:Receive>`,
  };
}

/** Sends input to a command. */
export function sendInput(shellId: string, commandId: string, input: Buffer, isLast: boolean): WinrmMessage {
  return {
    action: 'Send',
    shellId,
    body: xml`<rsp:Send><rsp:Stream Name="stdin" CommandId="${commandId}" End="${String(isLast)}">${input.toString('base64')}</rsp:Stream></rsp:Send>`,
  };
}

/** Ends a command and releases it in the service. */
export function terminate(shellId: string, commandId: string): WinrmMessage {
  return {
    action: 'Signal',
    shellId,
    body: xml`<rsp:Signal CommandId="${commandId}"><rsp:Code>${NAMESPACES.shell}/signal/terminate</rsp:Code></rsp:Signal>`,
  };
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
<s:Envelope xmlns:s="${NAMESPACES.soap}" xmlns:a="${NAMESPACES.addressing}" xmlns:w="${NAMESPACES.management}" xmlns:rsp="${NAMESPACES.shell}"><s:Header><a:To>${url}</a:To><a:ReplyTo><a:Address s:mustUnderstand="true">${ANONYMOUS}</a:Address></a:ReplyTo><a:Action s:mustUnderstand="true">${ACTIONS[action]}</a:Action><a:MessageID>uuid:${messageId}</a:MessageID><w:ResourceURI s:mustUnderstand="true">${COMMAND_SHELL}</w:ResourceURI><w:MaxEnvelopeSize s:mustUnderstand="true">${String(LONGEST_ANSWER)}</w:MaxEnvelopeSize><w:OperationTimeout>PT${String(OPERATION_TIMEOUT)}S</w:OperationTimeout><w:Locale xml:lang="en-US" s:mustUnderstand="false"/>${selectors}${optionSet}</s:Header><s:Body>${body}</s:Body></s:Envelope>`
    .text;
}
