import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { DoubleCommand, type Program } from './double-command.ts';
import { bodies, fault, readRequest, type WinrmRequest, type WinrmResponse } from './envelopes.ts';

/** Settings of a {@link WinrmDouble}. */
export interface WinrmDoubleOptions {
  /** Certificate and key as PEM. */
  readonly cert: string;
  readonly key: string;
  /** Runs the commands. */
  readonly program: Program;
  readonly username?: string;
  readonly password?: string;
}

/**
 * A double of a Windows machine's WinRM service: HTTPS, Basic authentication, and shells of `cmd.exe`, as
 * [MS-WSMV] describes them. The test defines what commands do.
 */
export class WinrmDouble implements AsyncDisposable {
  /** Number of requests from all clients. */
  requests = 0;
  /** Requests in order, as the last part of each action. */
  readonly asked: string[] = [];
  /** Lines of all commands. */
  readonly commandLines: string[] = [];
  /** Authentication schemes that a 401 offers. */
  schemes: readonly string[] = ['Negotiate', 'Basic realm="WSMAN"'];
  /** Number of the next output requests that time out. */
  timeouts = 0;
  readonly #authorization: string;
  readonly #program: Program;
  readonly #server: Server;
  readonly #shells = new Map<string, Map<string, DoubleCommand>>();
  readonly #messageIds = new Set<string>();

  private constructor(options: WinrmDoubleOptions) {
    const { username = 'Administrator', password = 'pa:ss wörd', program, cert, key } = options;
    this.#authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    this.#program = program;
    this.#server = createServer({ cert, key }, (request, response) => void this.#serve(request, response));
  }

  static async start(options: WinrmDoubleOptions): Promise<WinrmDouble> {
    const double = new WinrmDouble(options);
    await once(double.#server.listen(0, '127.0.0.1'), 'listening');
    return double;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Shells that were not deleted. */
  get openShells(): number {
    return this.#shells.size;
  }

  /** Forgets all shells, as after a restart. */
  restart(): void {
    this.#shells.clear();
  }

  /** Disappears like a machine that is powered off in the middle of its work. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    for (const commands of this.#shells.values()) for (const command of commands.values()) command.end();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests += 1;
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    if (request.url !== '/wsman' || request.method !== 'POST') {
      response.writeHead(404).end();
    } else if (!this.#isKnown(request)) {
      response.writeHead(401, { 'www-authenticate': [...this.schemes] }).end();
    } else {
      const { status, document } = await this.#respond(body);
      response.writeHead(status, { 'content-type': 'application/soap+xml;charset=UTF-8' }).end(document);
    }
  }

  #isKnown({ headers: { authorization } }: IncomingMessage): boolean {
    return authorization === this.#authorization && this.schemes.some((scheme) => scheme.startsWith('Basic'));
  }

  async #respond(body: string): Promise<WinrmResponse> {
    const request = readRequest(body);
    if ('status' in request) return request;
    if (this.#messageIds.has(request.messageId)) return fault('wsa:DuplicateMessageID', '2150858752');
    this.#messageIds.add(request.messageId);
    this.asked.push(request.action);
    if (request.action === 'Create') return this.#create(request);
    const commands = this.#shells.get(request.shellId ?? '');
    if (commands === undefined) return fault('w:InvalidSelectors', '2150858843');
    if (request.action === 'Command') return this.#command(request, commands);
    if (request.action === 'Delete') {
      for (const command of commands.values()) command.end();
      this.#shells.delete(request.shellId ?? '');
      return bodies.empty(request);
    }
    const command = commands.get(request.commandId ?? '');
    if (command === undefined) return fault('w:InvalidSelectors', '2150858843');
    switch (request.action) {
      case 'Send':
        return command.take(request.input, request.isLastInput)
          ? bodies.sent(request)
          : fault('w:InternalError', '2147942632'); // the pipe is being closed
      case 'Receive':
        return await this.#receive(request, command);
      case 'Signal':
        command.end();
        commands.delete(command.id);
        return bodies.signalled(request);
      default:
        return fault('wsa:ActionNotSupported', '2150858817');
    }
  }

  #create(request: WinrmRequest): WinrmResponse {
    if (request.options.WINRS_CODEPAGE !== '65001') return fault('w:InvalidOptions', '2150858770');
    const shellId = crypto.randomUUID().toUpperCase();
    this.#shells.set(shellId, new Map());
    return bodies.created(request, shellId);
  }

  #command(request: WinrmRequest, commands: Map<string, DoubleCommand>): WinrmResponse {
    if (request.commandLine.length > 8191) return fault('w:InternalError', '2147942487');
    this.commandLines.push(request.commandLine);
    const command = new DoubleCommand(request.commandLine, this.#program);
    commands.set(command.id, command);
    return bodies.started(request, command.id);
  }

  async #receive(request: WinrmRequest, command: DoubleCommand): Promise<WinrmResponse> {
    if (this.timeouts > 0) {
      this.timeouts -= 1;
      return fault('w:TimedOut', '2150858793');
    }
    const output = await command.nextOutput(request.timeout);
    return output === undefined
      ? fault('w:TimedOut', '2150858793')
      : bodies.received(request, command.id, output);
  }
}
