import { record, text, time } from '../session/answer-shape.ts';
import { BUILD_ID, PROVIDER_NAME } from '../upload/image-properties.ts';
import type { KeyPair, NovaServer } from './nova-server.ts';

/** The server metadata with the port that has to be reached. */
const PORT = 'nodepool_builder_port';
/** The server metadata with the time of the launch, in ISO 8601. */
const LAUNCHED_AT = 'nodepool_builder_launched_at';

/** What is known of a launch before its server is there. */
export interface LaunchRecord {
  /** Of the key pair and of the floating IP; the server names it as its key. */
  readonly name: string;
  readonly buildId: string;
  readonly launchedAt: Date;
  /** The TCP port that has to be reached. */
  readonly port: number;
}

/** What a server carries of its launch. */
export function launchMetadata(
  { buildId, launchedAt, port }: LaunchRecord,
  provider: string,
): Record<string, string> {
  return {
    [PROVIDER_NAME]: provider,
    [BUILD_ID]: buildId,
    [PORT]: String(port),
    [LAUNCHED_AT]: launchedAt.toISOString(),
  };
}

/** Reads what a server carries; undefined for one that somebody changed so that it cannot be read. */
export function recordOfServer({ keyName: name, metadata }: NovaServer): LaunchRecord | undefined {
  if (name === undefined) return undefined;
  return readable(() => ({
    name,
    buildId: text(metadata[BUILD_ID], BUILD_ID),
    launchedAt: new Date(time(metadata[LAUNCHED_AT], LAUNCHED_AT)),
    port: Number(text(metadata[PORT], PORT)),
  }));
}

/** A key pair has room for it in the comment of its key. */
export function keyPairOfLaunch({ name, ...rest }: LaunchRecord, publicKey: string): KeyPair {
  const [type, key] = publicKey.trim().split(/\s+/);
  return { name, publicKey: `${type} ${key} ${encodeURIComponent(JSON.stringify(rest))}` };
}

/** Reads what a key pair carries; undefined for one of somebody else. */
export function recordOfKeyPair({ name, publicKey }: KeyPair): LaunchRecord | undefined {
  const [, , comment = ''] = publicKey.trim().split(/\s+/);
  return readable(() => {
    const { buildId, launchedAt, port } = record(JSON.parse(decodeURIComponent(comment)), 'the comment');
    return {
      name,
      buildId: text(buildId, 'buildId'),
      launchedAt: new Date(time(launchedAt, 'launchedAt')),
      port: Number(port),
    };
  });
}

function readable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
