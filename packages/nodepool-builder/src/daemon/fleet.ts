import { Client, GearmanError, type ServerAddress } from '@nodepool-builder/gearman-node';
import type { BuildRequest, Logger } from '@nodepool-builder/image-builder';
import { withReason } from '@nodepool-builder/image-manager/protocol';
import { functionName } from '../protocol/functions.ts';
import { askServers } from '../site/ask-servers.ts';

/** Returns whether any builder at the job servers offers an image. Throws as {@link askServers} does. */
export async function isImageOffered(
  servers: readonly ServerAddress[],
  imageId: string,
  signal?: AbortSignal,
): Promise<boolean> {
  const upload = functionName('image-upload', imageId);
  const functions = await askServers(servers, (admin) => admin.status(), signal);
  return functions.some(({ name, availableWorkers }) => name === upload && availableWorkers > 0);
}

/**
 * Requests a build from the builders at the job servers. Hosts share a job only if they submit it to the same server,
 * which is the first reachable one in the configured order. While some hosts cannot reach a server, an image may be
 * built twice.
 *
 * @returns the builder's error if the build failed
 * @throws GearmanError if the result of the job is unknown
 */
export async function requestBuild(
  servers: readonly ServerAddress[],
  { name, imageId, key }: BuildRequest,
  signal: AbortSignal,
  logger: Logger,
): Promise<Error | undefined> {
  // A new client starts with the first server again. An existing one would stay with its current server.
  const client = new Client({ servers, clientId: 'nodepool-builder zuul poller', logger });
  try {
    const argument = JSON.stringify({ 'image-id': imageId, reason: true });
    await client.submit(functionName('image-build', name), argument, { unique: key, signal });
    return undefined;
  } catch (error) {
    const isFinal = error instanceof GearmanError && ['job-failed', 'job-exception'].includes(error.code);
    if (isFinal) return withReason(error) as Error;
    throw error;
  } finally {
    await client.close();
  }
}
