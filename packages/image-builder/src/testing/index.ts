export type { ImageProvider } from '../types.ts';
