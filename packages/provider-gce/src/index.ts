export { GCE_MODULE, GCE_MODULE as default } from './gce-module.ts';
export { GceProvider, type GceProviderOptions } from './gce-provider.ts';
export type { GceEntry } from './gce-settings.ts';
