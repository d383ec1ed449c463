import { type FaultProxy, startFaultProxy } from '../fixtures/fault-proxy/fault-proxy.ts';
import { cutsAfter, type Fault, losesResponse, respondsWith } from '../fixtures/fault-proxy/faults.ts';

/** Faults before, during and after the effect of a request. */
const FAULTS: readonly Fault[] = [respondsWith(503), respondsWith(500), cutsAfter(1000), losesResponse()];

/** A service that fails a fraction of all requests. */
export interface FaultyService {
  readonly proxy: FaultProxy;
  /** Number of failed requests so far. */
  readonly faults: number;
}

/**
 * Starts a proxy in front of a service.
 *
 * @param target origin of the service, `http://127.0.0.1:port`
 * @param rate fraction of requests that fail, from 0 to 1
 */
export async function startFaultyService(target: string, rate: number): Promise<FaultyService> {
  const proxy = await startFaultProxy(target);
  const injection = proxy.inject({ times: Number.POSITIVE_INFINITY, chance: rate }, async (exchange) => {
    const fault = FAULTS[Math.floor(Math.random() * FAULTS.length)];
    await fault?.(exchange);
  });
  return {
    proxy,
    get faults() {
      return injection.hits;
    },
  };
}
