import { ImageError } from '@nodepool-builder/image-builder';
import { LineSplitter } from '@nodepool-builder/image-builder/internal';
import type { Document } from '@xmldom/xmldom';
import type { RemoteCommandOptions, RemoteFile, RemoteResult, RemoteShell } from '../remote-shell.ts';
import { all, type CommandOutput, NAMESPACES, outputIn, text, type WinrmMessage } from './message.ts';
import { PUT_COMMAND, uploadOf } from './put-files.ts';
import { readableErrors } from './readable-errors.ts';
import { WinrmError, type WinrmService } from './winrm-service.ts';
import { xml } from './xml.ts';

/** Timeout for releasing a command or a shell, in milliseconds. The machine may be off. */
const TIDYING_LIMIT = 5_000;

/** Code page of the output. */
const UTF_8 = '65001';

/** Maximum length of a command line of `cmd.exe`. */
const MAX_COMMAND_LINE_LENGTH = 8191;

/** A WinRM shell, in which commands run one after the other. */
export class WinrmShell implements RemoteShell {
  readonly #service: WinrmService;
  readonly #shellId: string;
  #isBroken = false;

  /**
   * Logs in.
   *
   * @param service closed with the shell
   * @throws ImageError `login-refused`, `instance-failed`
   */
  static async open(service: WinrmService, signal: AbortSignal): Promise<WinrmShell> {
    const output = xml`<rsp:OutputStreams>stdout stderr</rsp:OutputStreams>`;
    const body = xml`<rsp:Shell><rsp:InputStreams>stdin</rsp:InputStreams>${output}</rsp:Shell>`;
    const options = { WINRS_NOPROFILE: 'FALSE', WINRS_CODEPAGE: UTF_8 };
    const created = await service.ask({ action: 'Create', options, body }, signal);
    const selector = all(created, 'management', 'Selector').find(
      (candidate) => candidate.getAttribute('Name') === 'ShellId',
    );
    const shellId = text(all(created, 'shell', 'ShellId')[0]) ?? text(selector);
    if (shellId === undefined) throw unexpected(service, 'Create');
    return new WinrmShell(service, shellId);
  }

  private constructor(service: WinrmService, shellId: string) {
    this.#service = service;
    this.#shellId = shellId;
  }

  get isClosed(): boolean {
    return this.#isBroken || this.#service.isLost;
  }

  async put(files: readonly RemoteFile[], signal: AbortSignal): Promise<void> {
    if (files.length === 0) return;
    const said: string[] = [];
    const digests: string[] = [];
    const onLine = (line: string): void => void said.push(line);
    const { exitCode } = await this.run(PUT_COMMAND, { signal, onLine, input: uploadOf(files, digests) });
    if (exitCode === 0 && said.join(' ').toLowerCase() === digests.join(' ')) return;
    throw new ImageError(
      'instance-failed',
      `${this.#service.name}: cannot write the files there: ${said.slice(-5).join(' / ')}`,
    );
  }

  close(): void {
    if (this.#service.isLost) return;
    void this.#ask({ action: 'Delete', body: xml`` }, undefined, TIDYING_LIMIT)
      .catch(() => {}) // the service releases it later
      .finally(() => this.#service.close());
  }

  async run(commandLine: string, { signal, onLine, input }: RemoteCommandOptions): Promise<RemoteResult> {
    if (commandLine.length > MAX_COMMAND_LINE_LENGTH) {
      throw new ImageError(
        'invalid-configuration',
        `Windows accepts command lines of at most ${MAX_COMMAND_LINE_LENGTH} characters; put the command into a script`,
      );
    }
    let commandId: string | undefined;
    try {
      const started = await this.#ask(
        {
          action: 'Command',
          options: { WINRS_CONSOLEMODE_STDIN: 'FALSE', WINRS_SKIP_CMD_SHELL: 'FALSE' },
          body: xml`<rsp:CommandLine><rsp:Command>${commandLine}</rsp:Command></rsp:CommandLine>`,
        },
        signal,
      );
      commandId = text(all(started, 'shell', 'CommandId')[0]);
      if (commandId === undefined) throw unexpected(this.#service, 'Command');
      await this.#feed(commandId, input, signal);
      return await this.#receive(commandId, { signal, onLine });
    } catch (error) {
      // A restarted service does not know this shell.
      if (!signal.aborted) this.#isBroken = true;
      throw error;
    } finally {
      if (commandId !== undefined) await this.#forget(commandId);
    }
  }

  async #feed(
    commandId: string,
    input: AsyncIterable<Buffer> | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const send = async (piece: Buffer, isLast: boolean): Promise<void> => {
      const data = piece.toString('base64');
      const end = String(isLast);
      const stream = xml`<rsp:Stream Name="stdin" CommandId="${commandId}" End="${end}">${data}</rsp:Stream>`;
      const body = xml`<rsp:Send>${stream}</rsp:Send>`;
      await this.#ask({ action: 'Send', body }, signal);
    };
    try {
      for await (const piece of input ?? []) await send(piece, false);
      await send(Buffer.alloc(0), true);
    } catch (error) {
      // A command that has ended takes no input. Its exit code is more useful.
      if (!(error instanceof WinrmError)) throw error;
    }
  }

  async #receive(commandId: string, { signal, onLine }: RemoteCommandOptions): Promise<RemoteResult> {
    const lines = { stdout: new LineSplitter(), stderr: new LineSplitter() };
    const readable = readableErrors();
    const take = async (stream: 'stdout' | 'stderr', complete: readonly string[]): Promise<void> => {
      for (const line of stream === 'stderr' ? complete.flatMap(readable) : complete) await onLine(line);
    };
    for (;;) {
      const output = await this.#nextOutput(commandId, signal);
      for (const { stream, bytes } of output?.pieces ?? []) await take(stream, lines[stream].push(bytes));
      if (output?.isDone !== true) continue;
      await take('stdout', lines.stdout.end());
      await take('stderr', lines.stderr.end());
      return output.exitCode === undefined ? {} : { exitCode: output.exitCode };
    }
  }

  /** Returns undefined if the operation timed out. */
  async #nextOutput(commandId: string, signal: AbortSignal): Promise<CommandOutput | undefined> {
    try {
      const streams = xml`<rsp:DesiredStream CommandId="${commandId}">stdout stderr</rsp:DesiredStream>`;
      const body = xml`<rsp:Receive>${streams}</rsp:Receive>`;
      // The response arrives when the command writes or ends.
      const output = outputIn(await this.#ask({ action: 'Receive', body }, signal));
      if (output === undefined) throw unexpected(this.#service, 'Receive');
      return output;
    } catch (error) {
      if (error instanceof WinrmError && error.isTimeout) return undefined;
      throw error;
    }
  }

  async #forget(commandId: string): Promise<void> {
    if (this.#service.isLost) return;
    const code = xml`<rsp:Code>${NAMESPACES.shell}/signal/terminate</rsp:Code>`;
    const body = xml`<rsp:Signal CommandId="${commandId}">${code}</rsp:Signal>`;
    await this.#ask({ action: 'Signal', body }, undefined, TIDYING_LIMIT).catch(() => {}); // it is removed with the shell
  }

  /** Sends a request about this shell. */
  async #ask(
    message: Omit<WinrmMessage, 'shellId'>,
    signal: AbortSignal | undefined,
    timeLimit?: number,
  ): Promise<Document> {
    return await this.#service.ask({ ...message, shellId: this.#shellId }, signal, timeLimit);
  }
}

function unexpected({ name }: WinrmService, action: string): ImageError {
  return new ImageError('instance-failed', `${name}: WinRM sent an unexpected response to ${action}`);
}
