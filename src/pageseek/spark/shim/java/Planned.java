package io.pageseek.spark;

import java.nio.ByteBuffer;
import java.util.function.BiFunction;

/** What Python answers. It lives in the driver, and is called through py4j, which knows only interfaces of the JDK. */
final class Planned {
  private final BiFunction<String, String, Object> python;

  Planned(BiFunction<String, String, Object> python) {
    this.python = python;
  }

  String text(String question, String about) {
    return (String) python.apply(question, about);
  }

  long number(String question) {
    return ((Number) python.apply(question, "")).longValue();
  }

  Object answer(String question) {
    return python.apply(question, "");
  }

  /** Pieces of bytes: their number, then the length and the bytes of each. */
  byte[][] pieces(String question, String about) {
    ByteBuffer packed = ByteBuffer.wrap((byte[]) python.apply(question, about));
    byte[][] made = new byte[packed.getInt()][];
    for (int i = 0; i < made.length; i++) {
      made[i] = new byte[packed.getInt()];
      packed.get(made[i]);
    }
    return made;
  }

  /** Another object of Python, made by this one. */
  @SuppressWarnings("unchecked")
  Planned planned(String question, String about) {
    return new Planned((BiFunction<String, String, Object>) python.apply(question, about));
  }
}
