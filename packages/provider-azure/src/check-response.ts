import { atOrigin } from '@nodepool-builder/image-builder/internal';
import { cloudError, responseMeter } from '@nodepool-builder/image-builder/plugin';
import type { Policy } from './agent-policy.ts';

/** Part of an SDK request that the policy reads and changes. */
interface PolicyRequest {
  url: string;
  abortSignal?: { readonly aborted: boolean };
  onDownloadProgress?: (progress: { readonly loadedBytes: number }) => void;
}

/** Part of a response that the policy reads. */
interface PolicyResponse {
  readonly status: number;
  readonly bodyAsText?: string | null;
}

/**
 * Creates a policy that rejects any response that does not come from Resource Manager, such as a proxy's page. It also
 * limits how much the SDK reads into memory. Links in responses, such as the link to the next page, are requested from
 * the configured endpoint, because requests contain a token.
 */
export function checkResponse(subject: string, endpoint: string): Policy<PolicyRequest, PolicyResponse> {
  return {
    name: 'checkResponse',
    async sendRequest(request, next) {
      request.url = atOrigin(new URL(request.url), new URL(endpoint)).href;
      const meter = responseMeter(subject);
      const tooLong = new AbortController();
      const { abortSignal: given } = request;
      const signals = [tooLong.signal, ...(given instanceof AbortSignal ? [given] : [])];
      request.abortSignal = AbortSignal.any(signals);
      request.onDownloadProgress = ({ loadedBytes }) => {
        if (loadedBytes > meter.limit) tooLong.abort();
      };
      try {
        const response = await next(request);
        const { status, bodyAsText: body } = response;
        meter.add(body?.length ?? 0);
        const isSuccess = status >= 200 && status < 300;
        if (!isSuccess || !body || /^\s*\{/.test(body)) return response;
        throw cloudError('invalid-response', subject, 'the response is not JSON from Resource Manager');
      } catch (error) {
        if (!tooLong.signal.aborted) throw error;
        throw cloudError('response-too-large', subject, meter.reason);
      }
    },
  };
}
