import { Agent } from 'node:https';
import type { InstanceAddress } from '@nodepool-builder/image-builder';
import { authorityOf, HttpClient } from '@nodepool-builder/image-builder/module-kit';

/** Seconds; the signal usually aborts earlier. */
const TIMEOUT = 60;

/** Status for a request without credentials. Windows responds with 503 before the service is up. */
const UNAUTHORIZED = 401;

/**
 * A {@link Probe} for a WinRM service. It sends no credentials, so it does not verify the certificate.
 */
export async function probeWinrm(address: InstanceAddress, signal: AbortSignal): Promise<void> {
  const authority = authorityOf(address);
  const agent = new Agent({ rejectUnauthorized: false });
  const http = new HttpClient({ timeout: TIMEOUT, agents: { https: agent } });
  const url = new URL(`https://${authority}/wsman`);
  const { status } = await http.send({
    method: 'POST',
    url,
    headers: { 'content-type': 'application/soap+xml;charset=UTF-8' },
    signal,
  });
  if (status !== UNAUTHORIZED) throw new Error(`${authority} answers with HTTP ${status}`);
}
