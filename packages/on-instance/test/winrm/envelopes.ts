import { randomUUID } from 'node:crypto';
import { DOMParser, type Document, onErrorStopParsing } from '@xmldom/xmldom';
import type { DoubleOutput } from './double-command.ts';

const SOAP = 'http://www.w3.org/2003/05/soap-envelope';
const ADDRESSING = 'http://schemas.xmlsoap.org/ws/2004/08/addressing';
const MANAGEMENT = 'http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd';
const SHELL = 'http://schemas.microsoft.com/wbem/wsman/1/windows/shell';
const TRANSFER = 'http://schemas.xmlsoap.org/ws/2004/09/transfer';

/** Last parts of the actions that a shell supports. */
const ACTION = new RegExp(`^(?:${TRANSFER}/(Create|Delete)|${SHELL}/(Command|Receive|Send|Signal))$`);

/** A request. */
export interface WinrmRequest {
  readonly action: string;
  readonly messageId: string;
  readonly shellId: string | undefined;
  readonly commandId: string | undefined;
  readonly options: Readonly<Record<string, string>>;
  /** Timeout in milliseconds. */
  readonly timeout: number;
  readonly commandLine: string;
  readonly input: Buffer;
  readonly isLastInput: boolean;
}

/** A response. */
export interface WinrmResponse {
  readonly status: number;
  readonly document: string;
}

/** Parses a request as strictly as the service does. Missing or wrong parts lead to a fault. */
export function readRequest(body: string): WinrmRequest | WinrmResponse {
  if (Buffer.byteLength(body) > 153_600) return fault('w:EncodingLimit', '2150858878');
  const document = new DOMParser({ onError: onErrorStopParsing }).parseFromString(body, 'text/xml');
  const header = (namespace: string, name: string): string | undefined =>
    document.getElementsByTagNameNS(namespace, name)[0]?.textContent ?? undefined;
  const action = ACTION.exec(header(ADDRESSING, 'Action') ?? '');
  const messageId = /^uuid:[0-9a-f-]{36}$/i.exec(header(ADDRESSING, 'MessageID') ?? '')?.[0];
  const timeout = /^PT(\d+)S$/.exec(header(MANAGEMENT, 'OperationTimeout') ?? '')?.[1];
  const envelopeSize = Number(header(MANAGEMENT, 'MaxEnvelopeSize'));
  if (action === null) return fault('wsa:ActionNotSupported', '2150858817');
  const to = header(ADDRESSING, 'To') ?? '';
  if (messageId === undefined || !to.endsWith('/wsman') || timeout === undefined || !(envelopeSize >= 8192)) {
    return fault('wsa:MessageInformationHeaderRequired', '2150858816');
  }
  if (header(MANAGEMENT, 'ResourceURI') !== `${SHELL}/cmd`)
    return fault('wsa:DestinationUnreachable', '2150858811');
  const line = [header(SHELL, 'Command') ?? '', header(SHELL, 'Arguments')].filter(
    (part) => part !== undefined,
  );
  return {
    action: action[1] ?? action[2] ?? '',
    messageId,
    shellId: attributed(document, MANAGEMENT, 'Selector').ShellId,
    commandId: ['DesiredStream', 'Stream', 'Signal']
      .map((name) => document.getElementsByTagNameNS(SHELL, name)[0]?.getAttribute('CommandId'))
      .find((id) => typeof id === 'string'),
    options: attributed(document, MANAGEMENT, 'Option'),
    timeout: Number(timeout) * 1000,
    commandLine: line.join(' '),
    input: Buffer.from(header(SHELL, 'Stream') ?? '', 'base64'),
    isLastInput: document.getElementsByTagNameNS(SHELL, 'Stream')[0]?.getAttribute('End') === 'true',
  };
}

/** Responses of the service, whose prefixes differ from the requests’. */
export const bodies = {
  empty: (request: WinrmRequest): WinrmResponse => respond(request, ''),
  created: (request: WinrmRequest, shellId: string): WinrmResponse =>
    respond(
      request,
      `<x:ResourceCreated><a:Address>https://127.0.0.1/wsman</a:Address><a:ReferenceParameters><w:ResourceURI>${SHELL}/cmd</w:ResourceURI><w:SelectorSet><w:Selector Name="ShellId">${shellId}</w:Selector></w:SelectorSet></a:ReferenceParameters></x:ResourceCreated><q:Shell><q:ShellId>${shellId}</q:ShellId><q:InputStreams>stdin</q:InputStreams><q:OutputStreams>stdout stderr</q:OutputStreams></q:Shell>`,
    ),
  started: (request: WinrmRequest, commandId: string): WinrmResponse =>
    respond(request, `<q:CommandResponse><q:CommandId>${commandId}</q:CommandId></q:CommandResponse>`),
  sent: (request: WinrmRequest): WinrmResponse => respond(request, '<q:SendResponse/>'),
  signalled: (request: WinrmRequest): WinrmResponse => respond(request, '<q:SignalResponse/>'),
  received: (request: WinrmRequest, commandId: string, { pieces, exitCode }: DoubleOutput): WinrmResponse => {
    const streams = pieces.map(
      ({ stream, bytes }) =>
        `<q:Stream Name="${stream}" CommandId="${commandId}">${bytes.toString('base64')}</q:Stream>`,
    );
    const state =
      exitCode === undefined
        ? `<q:CommandState CommandId="${commandId}" State="${SHELL}/CommandState/Running"/>`
        : `<q:Stream Name="stdout" CommandId="${commandId}" End="true"/><q:Stream Name="stderr" CommandId="${commandId}" End="true"/><q:CommandState CommandId="${commandId}" State="${SHELL}/CommandState/Done"><q:ExitCode>${exitCode}</q:ExitCode></q:CommandState>`;
    return respond(request, `<q:ReceiveResponse>${streams.join('')}${state}</q:ReceiveResponse>`);
  },
};

/** A fault response. */
export function fault(subcode: string, code: string): WinrmResponse {
  const body = `<e:Fault xmlns:f="http://schemas.microsoft.com/wbem/wsman/1/wsmanfault"><e:Code><e:Value>e:Receiver</e:Value><e:Subcode><e:Value>${subcode}</e:Value></e:Subcode></e:Code><e:Reason><e:Text xml:lang="en-US">The double refuses. </e:Text></e:Reason><e:Detail><f:WSManFault Code="${code}" Machine="DOUBLE"><f:Message>The double refuses. </f:Message></f:WSManFault></e:Detail></e:Fault>`;
  return { status: 500, document: wrapped('', body) };
}

function respond({ messageId }: WinrmRequest, body: string): WinrmResponse {
  return { status: 200, document: wrapped(`<a:RelatesTo>${messageId}</a:RelatesTo>`, body) };
}

function wrapped(header: string, body: string): string {
  return `<e:Envelope xml:lang="en-US" xmlns:e="${SOAP}" xmlns:a="${ADDRESSING}" xmlns:w="${MANAGEMENT}" xmlns:x="${TRANSFER}" xmlns:q="${SHELL}"><e:Header><a:MessageID>uuid:${randomUUID()}</a:MessageID><a:To>${ADDRESSING}/role/anonymous</a:To>${header}</e:Header><e:Body>${body}</e:Body></e:Envelope>`;
}

function attributed(document: Document, namespace: string, name: string): Record<string, string> {
  return Object.fromEntries(
    [...document.getElementsByTagNameNS(namespace, name)].map((element) => [
      element.getAttribute('Name') ?? '',
      element.textContent ?? '',
    ]),
  );
}
