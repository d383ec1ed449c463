import { equal, match, ok, rejects } from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { inspect } from 'node:util';
import { selfSigned } from '../../../../test/fixtures/self-signed.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import type { Login } from '../../src/remote-shell.ts';
import { HostKey, parseFingerprint } from '../../src/ssh/host-key.ts';
import { winrmLogin } from '../../src/winrm/winrm-login.ts';
import { announcement, CERTIFICATE, fingerprint256, Windows } from './windows.ts';
import { WinrmDouble } from './winrm-double.ts';

const OTHER_CERTIFICATE = await selfSigned();

interface Site {
  readonly double: WinrmDouble;
  readonly address: { readonly host: string; readonly port: number };
  readonly hostKey: HostKey;
  readonly login: Login;
}

async function site(
  t: TestContext,
  {
    password = 'pa:ss wörd\n',
    isTold = false,
    ca,
    fingerprint = ca === undefined ? parseFingerprint(fingerprint256(CERTIFICATE)) : undefined,
    console = '',
  }: {
    password?: string;
    isTold?: boolean;
    ca?: string;
    fingerprint?: string | undefined;
    console?: string;
  } = {},
): Promise<Site> {
  const directory = await mkdtemp(join(tmpdir(), 'winrm-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const passwordFile = join(directory, 'password');
  await writeFile(passwordFile, password);
  const caFile = join(directory, 'ca.pem');
  if (ca !== undefined) await writeFile(caFile, ca);
  const double = await WinrmDouble.start({ ...CERTIFICATE, program: new Windows().program });
  undoAfter(t, () => double[Symbol.asyncDispose]());
  const hostKey = new HostKey();
  const settings = {
    port: 5986,
    ...(!isTold && { 'password-file': passwordFile }),
    ...(ca !== undefined && { 'ca-file': caFile }),
    ...(fingerprint && { fingerprint }),
  };
  const login = winrmLogin('Administrator', settings, hostKey);
  if (login.announcedKeys !== undefined) hostKey.learn(login.announcedKeys(console));
  return {
    double,
    address: { host: '127.0.0.1', port: double.port },
    hostKey,
    login,
  };
}

describe('winrmLogin', () => {
  it('a WinRM login uses the password file, and later logs in only to the same machine', async (t) => {
    const { address, hostKey, login } = await site(t);
    const shell = await login.connect(address, t.signal);
    undoAfter(t, () => shell.close());
    ok(hostKey.pinned !== undefined && CERTIFICATE.cert.replaceAll('\n', '').includes(hostKey.pinned));
    const other = await WinrmDouble.start({ ...OTHER_CERTIFICATE, program: new Windows().program });
    undoAfter(t, () => other[Symbol.asyncDispose]());
    await rejects(login.connect({ ...address, port: other.port }, t.signal), { code: 'host-key-changed' });
    equal(other.requests, 0);
  });

  it('a WinRM login fails with a wrong password, which no error contains', async (t) => {
    const { address, hostKey, login } = await site(t, { password: 'wrong-secret' });
    const error = await login.connect(address, t.signal).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    ok(error instanceof Error && 'code' in error);
    equal(error.code, 'login-refused');
    match(error.message, /^Administrator@127\.0\.0\.1:\d+ cannot log in with WinRM: correct the username or/);
    const shown = inspect(error, { depth: Infinity, showHidden: true });
    for (const secret of ['wrong-secret', Buffer.from('Administrator:wrong-secret').toString('base64')]) {
      ok(!shown.includes(secret));
    }
    equal(hostKey.pinned, undefined);
  });

  it('a WinRM login explains what to do if the machine has no Basic authentication', async (t) => {
    const { double, address, login } = await site(t);
    double.schemes = ['Negotiate', 'Kerberos'];
    await rejects(login.connect(address, t.signal), {
      code: 'login-refused',
      message:
        /does not accept Basic authentication, but offers Negotiate, Kerberos; NTLM and Kerberos are not supported/,
    });
  });

  it('a WinRM login trusts a certificate signed by an authority in the file', async (t) => {
    const { address, login } = await site(t, { ca: OTHER_CERTIFICATE.cert + CERTIFICATE.cert });
    const shell = await login.connect(address, t.signal);
    shell.close();
    match(login.describe(), /^the certificate is SHA256:\S+, trusted by the ca-file$/);
  });

  it('a WinRM login sends no password to a machine that the authorities do not verify', async (t) => {
    const { double, address, login } = await site(t, { ca: OTHER_CERTIFICATE.cert });
    await rejects(login.connect(address, t.signal), {
      code: 'login-refused',
      message: /WinRM does not respond: .*self-signed certificate/,
    });
    equal(double.requests, 0);
  });

  it('a WinRM login succeeds if the certificate has the configured fingerprint', async (t) => {
    const { address, login } = await site(t);
    const shell = await login.connect(address, t.signal);
    shell.close();
    match(login.describe(), /^the certificate is SHA256:\S+, trusted by the fingerprint$/);
  });

  it('a WinRM login sends no password if the certificate has another fingerprint', async (t) => {
    const { double, address, login, hostKey } = await site(t, {
      fingerprint: parseFingerprint(fingerprint256(OTHER_CERTIFICATE)),
    });
    await rejects(login.connect(address, t.signal), {
      code: 'login-refused',
      message:
        /^the certificate at .* is SHA256:\S+, and "fingerprint" of winrm is SHA256:\S+: the password is not/,
    });
    equal(double.requests, 0);
    equal(hostKey.pinned, undefined);
  });

  it('a WinRM login succeeds if the console announces the certificate', async (t) => {
    const { address, login } = await site(t, { fingerprint: '', console: announcement(CERTIFICATE) });
    const shell = await login.connect(address, t.signal);
    shell.close();
    match(login.describe(), /, announced by the console$/);
  });

  it('a WinRM login sends no password if the console announces another certificate', async (t) => {
    const console = announcement(CERTIFICATE) + announcement(OTHER_CERTIFICATE);
    const { double, address, login } = await site(t, { fingerprint: '', console });
    await rejects(login.connect(address, t.signal), { code: 'login-refused' });
    equal(double.requests, 0);
  });

  it('a WinRM login sends no password without a fingerprint in the settings or on the console', async (t) => {
    const { double, address, login } = await site(t, { fingerprint: '' });
    await rejects(login.connect(address, t.signal), {
      code: 'login-refused',
      message:
        /is SHA256:\S+, and its console does not announce it, .* the password is not sent; .*"fingerprint" of winrm$/,
    });
    equal(double.requests, 0);
  });

  it('a WinRM login fails with a retriable error if the machine cannot be reached', async (t) => {
    const { double, address, login } = await site(t);
    await double[Symbol.asyncDispose]();
    await rejects(login.connect(address, t.signal), { code: 'login-refused', message: /ECONNREFUSED/ });
  });

  it('an aborted WinRM login ends a connection whose handshake is not complete', async (t) => {
    const server = createServer((socket) => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1');
    undoAfter(t, () => server.close());
    await once(server, 'listening');
    const { login } = await site(t);
    const cancelled = new AbortController();
    const { port } = server.address() as AddressInfo;
    const loggingIn = rejects(login.connect({ host: '127.0.0.1', port }, cancelled.signal), /enough/);
    const [socket] = (await once(server, 'connection')) as [Socket];
    undoAfter(t, () => socket.destroy());
    const closed = once(socket, 'close', { signal: AbortSignal.timeout(10_000) });
    cancelled.abort(new Error('enough'));
    await loggingIn;
    await closed;
  });

  it('a WinRM login uses the provider’s password once the provider knows it', async (t) => {
    const { address, login } = await site(t, { isTold: true });
    await rejects(login.connect(address, t.signal), {
      code: 'login-refused',
      message: /^the provider does not know the password of the machine .*; name its file in password-file$/,
    });
    await rejects(
      login.connect(address, t.signal, async () => undefined),
      { code: 'login-refused' },
    );
    const shell = await login.connect(address, t.signal, async () => 'pa:ss wörd');
    shell.close();
  });

  it('a WinRM login names the file that it cannot read', async (t) => {
    const { address, login } = await site(t, { password: '\n' });
    await rejects(login.connect(address, t.signal), {
      code: 'invalid-configuration',
      message: /^the password-file of winrm, ".*password", is empty$/,
    });
  });

  it('a WinRM probe sends no credentials', async (t) => {
    const { double, address, login } = await site(t);
    await login.probe(address, t.signal);
    equal(double.requests, 1);
    equal(double.asked.length, 0);
    await double[Symbol.asyncDispose]();
    await rejects(login.probe(address, t.signal));
  });
});
