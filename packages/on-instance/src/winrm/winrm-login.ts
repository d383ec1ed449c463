import { readFile } from 'node:fs/promises';
import { Agent } from 'node:https';
import { addAbortSignal } from 'node:stream';
import { type ConnectionOptions, checkServerIdentity, connect } from 'node:tls';
import { ImageError, type InstanceAddress } from '@nodepool-builder/image-builder';
import { HttpClient } from '@nodepool-builder/image-builder/plugin';
import type { WinrmSettings } from '../on-instance-settings.ts';
import { authorityOf, type Login } from '../remote-shell.ts';
import { announcedCertificates, fingerprint, type HostKey } from '../ssh/host-key.ts';
import { WinrmService } from './winrm-service.ts';
import { WinrmShell } from './winrm-shell.ts';

/** Timeout of a probe in seconds. The signal usually aborts earlier. */
const PROBE_TIMEOUT = 60;

/** Status of a request without credentials. Windows responds with 503 before the service is up. */
const UNAUTHORIZED = 401;

/**
 * Logs in with a password (Basic authentication) over WinRM and HTTPS ([MS-WSMV]). The password is sent only after the
 * certificate has been verified: by an authority, by a fingerprint, or by the console.
 *
 * `connect` also throws `invalid-configuration` if a file of the settings cannot be read.
 *
 * @param hostKey pins the certificate of the machine at the first login
 */
export function winrmLogin(username: string, settings: WinrmSettings, hostKey: HostKey): Login {
  const { 'ca-file': caFile, fingerprint: expected, 'password-file': passwordFile } = settings;
  const trustsConsole = caFile === undefined && expected === undefined;
  const verify = (certificate: string, address: InstanceAddress): void => {
    hostKey.check(certificate);
    if (expected !== undefined && fingerprint(certificate) !== expected) {
      throw untrusted(address, certificate, `"fingerprint" of winrm is ${expected}`);
    }
    if (trustsConsole && hostKey.pinned === undefined && !hostKey.isAnnounced(certificate)) {
      const reason = 'its console does not announce it, and winrm has no fingerprint and no ca-file';
      throw untrusted(address, certificate, reason);
    }
  };
  return {
    hostKey,
    port: settings.port,
    ...(trustsConsole && { announcedKeys: announcedCertificates }),
    probe: probeWinrm,
    connect: async (address, signal, told) => {
      const password =
        passwordFile === undefined
          ? await toldPassword(address, told)
          : (await readSetting('password-file', passwordFile)).replace(/\r?\n$/, '');
      const ca = caFile === undefined ? undefined : await readSetting('ca-file', caFile);
      let certificate: string | undefined;
      let refusal: unknown;
      const agent = serviceAgent(ca, (presented) => {
        try {
          verify(presented, address);
          certificate = presented;
        } catch (error) {
          refusal = error;
          throw error;
        }
      });
      const service = new WinrmService(address, { username, password }, agent);
      try {
        const shell = await WinrmShell.open(service, signal);
        hostKey.pinned = certificate;
        return shell;
      } catch (error) {
        service.close();
        signal.throwIfAborted();
        throw refusal ?? asLoginError(error);
      }
    },
    describe: () => {
      const reason = trustsConsole
        ? 'announced by the console'
        : `trusted by the ${caFile === undefined ? 'fingerprint' : 'ca-file'}`;
      return `the certificate is ${fingerprint(hostKey.pinned ?? '')}, ${reason}`;
    },
    hint: ({ host, port }) =>
      `Enter-PSSession -ComputerName ${host} -Port ${port} -UseSSL -Authentication Basic -Credential ${username} ` +
      '-SessionOption (New-PSSessionOption -SkipCACheck -SkipCNCheck)',
  };
}

/** @throws ImageError `login-refused` until the provider reports it */
async function toldPassword(
  address: InstanceAddress,
  told: (() => Promise<string | undefined>) | undefined,
): Promise<string> {
  const password = await told?.();
  if (password !== undefined) return password;
  throw new ImageError(
    'login-refused',
    `the provider does not know the password of the machine at ${authorityOf(address)}; name its file in password-file`,
  );
}

/** Resolves if a WinRM service responds. It sends no credentials, so it does not verify the certificate. */
async function probeWinrm(address: InstanceAddress, signal: AbortSignal): Promise<void> {
  const authority = authorityOf(address);
  const agent = new Agent({ rejectUnauthorized: false });
  const http = new HttpClient({ timeout: PROBE_TIMEOUT, agent });
  const url = new URL(`https://${authority}/wsman`);
  const { status } = await http.send({
    method: 'POST',
    url,
    headers: { 'content-type': 'application/soap+xml;charset=UTF-8' },
    signal,
  });
  if (status !== UNAUTHORIZED) throw new Error(`${authority} responds with HTTP ${status}`);
}

/** Handles a service that is starting or stopping, which may respond with any error. */
function asLoginError(error: unknown): unknown {
  if (!(error instanceof ImageError) || error.code !== 'instance-failed') return error;
  return new ImageError('login-refused', error.message, { cause: error });
}

/** Makes the error for a certificate that cannot be verified. */
function untrusted(address: InstanceAddress, certificate: string, reason: string): ImageError {
  return new ImageError(
    'login-refused',
    `the certificate at ${authorityOf(address)} is ${fingerprint(certificate)}, and ${reason}: the password is not sent; ` +
      'if it is the certificate of the base image, write it as "fingerprint" of winrm',
  );
}

async function readSetting(name: string, path: string): Promise<string> {
  const content = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new ImageError(
      'invalid-configuration',
      `cannot read the ${name} of winrm: ${(cause as Error).message}; correct the path or its permissions`,
      { cause },
    );
  });
  if (content.trim() !== '') return content;
  throw new ImageError('invalid-configuration', `the ${name} of winrm, "${path}", is empty`);
}

/**
 * Connects only to a peer whose certificate passes a check. Nothing is written to a connection before.
 *
 * @param ca PEM: an authority in it must have signed the certificate for the name or address, or it contains the
 * certificate itself. Without it, a self-signed or expired certificate is accepted.
 * @param check throws an error for a wrong certificate, which it gets as DER in base64
 */
export function serviceAgent(ca: string | undefined, check: (certificate: string) => void): Agent {
  const agent = new Agent({ keepAlive: true });
  const ended = new AbortController();
  agent.destroy = () => {
    Agent.prototype.destroy.call(agent);
    ended.abort(); // ends connections whose handshake is not complete, which the agent does not know yet
  };
  const trusted = ca?.replaceAll(/\s/g, '');
  agent.createConnection = (options, callback) => {
    const socket = connect({
      ...(options as ConnectionOptions),
      ...(ca !== undefined && { ca, allowPartialTrustChain: true }),
      checkServerIdentity: (host, peer) =>
        trusted?.includes(peer.raw.toString('base64')) ? undefined : checkServerIdentity(host, peer),
      rejectUnauthorized: ca !== undefined,
    });
    addAbortSignal(ended.signal, socket);
    const fail = (error: Error): void => callback?.(error, socket);
    socket.once('error', fail).once('secureConnect', () => {
      socket.off('error', fail);
      try {
        check(socket.getPeerX509Certificate()?.raw.toString('base64') ?? '');
        callback?.(null, socket);
      } catch (error) {
        socket.destroy();
        fail(error as Error);
      }
    });
    return undefined;
  };
  return agent;
}
