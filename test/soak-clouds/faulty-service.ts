import { type FaultProxy, startFaultProxy } from '../fixtures/fault-proxy/fault-proxy.ts';
import { cutsAfter, type Fault, losesResponse, respondsWith } from '../fixtures/fault-proxy/faults.ts';

/** Before the request takes effect, in the middle of it, and afterwards. */
const FAULTS: readonly Fault[] = [respondsWith(503), respondsWith(500), cutsAfter(1000), losesResponse()];

/** A service of which a fraction of all requests fail. */
export interface FaultyService {
  readonly proxy: FaultProxy;
  /** Number of failed requests so far. */
  readonly faults: number;
}

/**
 * Puts a proxy before a service.
 *
 * @param target `http://127.0.0.1:port`
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
