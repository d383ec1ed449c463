export { parseApiUrl } from './api/api-url.ts';
export { type ArtifactRule, FORMAT_ALIASES } from './builds/image-artifact.ts';
export { ZuulPollers } from './polling/zuul-pollers.ts';
export { ZuulArtifactBuilder } from './zuul-artifact.ts';
export type { MqttSettings, ZuulDiskImage, ZuulImage } from './zuul-image.ts';
