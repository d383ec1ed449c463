import { createHash, X509Certificate } from 'node:crypto';
import type { TestContext } from 'node:test';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { PUT_COMMAND } from '../../src/winrm/put-files.ts';
import { serviceAgent } from '../../src/winrm/winrm-login.ts';
import { WinrmService } from '../../src/winrm/winrm-service.ts';
import { WinrmShell } from '../../src/winrm/winrm-shell.ts';
import type { Program, ProgramSite } from './double-command.ts';
import { WinrmDouble } from './winrm-double.ts';

export const CERTIFICATE: { readonly cert: string; readonly key: string } = await selfSigned();

/** Fingerprint as `openssl x509 -fingerprint -sha256` prints it. */
export function fingerprint256({ cert }: { readonly cert: string }): string {
  return new X509Certificate(cert).fingerprint256;
}

/** Returns the announcement of a certificate on a machine's console. */
export function announcement(certificate: { readonly cert: string }): string {
  return [
    '-----BEGIN WINRM CERTIFICATE FINGERPRINT-----',
    fingerprint256(certificate),
    '-----END WINRM CERTIFICATE FINGERPRINT-----',
    '',
  ].join('\r\n');
}

/** A machine that stores files, and runs programs by the first word of their command line. */
export class Windows {
  readonly files = new Map<string, Buffer>();
  readonly #programs: Readonly<Record<string, Program>>;

  constructor(programs: Readonly<Record<string, Program>> = {}) {
    this.#programs = programs;
  }

  readonly program = async (site: ProgramSite): Promise<number> => {
    if (site.commandLine === PUT_COMMAND) return await this.#put(site);
    const program = this.#programs[site.commandLine.split(' ')[0] ?? ''];
    if (program === undefined) throw new Error(`no program for ${site.commandLine}`);
    return await program(site);
  };

  /** Does the work of the uploaded script, because this host has no PowerShell. */
  async #put({ input, write }: ProgramSite): Promise<number> {
    const names: string[] = [];
    for (const line of String(await input)
      .trimEnd()
      .split('\r\n')) {
      const bytes = Buffer.from(line.replace(/^>/, ''), 'base64');
      if (line.startsWith('>'))
        this.files.set(names[names.push(bytes.toString()) - 1] ?? '', Buffer.alloc(0));
      else this.#append(names.at(-1) ?? '', bytes);
    }
    for (const name of names) {
      const digest = createHash('sha256')
        .update(this.files.get(name) ?? '')
        .digest('hex');
      await write('stdout', `${digest.toUpperCase()}\r\n`);
    }
    return 0;
  }

  #append(name: string, bytes: Buffer): void {
    this.files.set(name, Buffer.concat([this.files.get(name) ?? Buffer.alloc(0), bytes]));
  }
}

/** Starts a double and logs in. */
export async function loggedIn(
  t: TestContext,
  programs: Readonly<Record<string, Program>> = {},
): Promise<{ double: WinrmDouble; shell: WinrmShell; windows: Windows }> {
  const windows = new Windows(programs);
  const double = await WinrmDouble.start({ ...CERTIFICATE, program: windows.program });
  undoAfter(t, () => double[Symbol.asyncDispose]());
  const address = { host: '127.0.0.1', port: double.port };
  const agent = serviceAgent(undefined, () => {});
  const identity = { username: 'Administrator', password: 'pa:ss wörd' };
  const shell = await WinrmShell.open(new WinrmService(address, identity, agent), t.signal);
  undoAfter(t, () => shell.close());
  return { double, shell, windows };
}
