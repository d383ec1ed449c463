import { readFile } from 'node:fs/promises';
import { getCACertificates } from 'node:tls';
import type { MqttSettings } from '@nodepool-builder/zuul-images';
import type { IClientOptions } from 'mqtt';

/** MQTT 5, and 3.1.1, whose number on the wire is 4. */
export type ProtocolVersion = 5 | 4;

/** Bytes of a message at most, a hundred times a usual report: a broker of MQTT 5 sends no larger ones. */
export const LARGEST_MESSAGE: number = 1024 * 1024;

/** How long a broker may take for an answer, in milliseconds. */
const TIMEOUT = 30_000;

/**
 * How to connect to a broker. The files are read each time, so that a password can be exchanged without a restart.
 *
 * @throws Error of the file system
 */
export async function connectOptions(
  { url, username, passwordFile, caFile }: MqttSettings,
  protocolVersion: ProtocolVersion,
): Promise<IClientOptions> {
  const { protocol, hostname, port } = new URL(url);
  const [password, ca] = await Promise.all([readIfNamed(passwordFile), readIfNamed(caFile)]);
  return {
    protocol: protocol === 'mqtts:' ? 'mqtts' : 'mqtt',
    // an address of IPv6 stands in brackets
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    ...(port !== '' && { port: Number(port) }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password: password.replace(/\r?\n$/, '') }),
    ...(ca !== undefined && { ca: [...getCACertificates('default'), ca] }),
    protocolVersion,
    ...(protocolVersion === 5 && { properties: { maximumPacketSize: LARGEST_MESSAGE } }),
    connectTimeout: TIMEOUT,
    // a new connection reads the files again
    reconnectPeriod: 0,
  };
}

async function readIfNamed(path: string | undefined): Promise<string | undefined> {
  return path === undefined ? undefined : await readFile(path, 'utf8');
}
